// Schemas in the form that the grammars of `node-llama-cpp` take. They demand every property that they have, and know no patterns.

/** Fields that are optional in the schema and that an answer has. The others would be demanded: an endless plan. */
const KEPT = ["call", "needs"];

/** The most elements of a list, and characters of a text. A small model does not end them by itself. */
const MAX_ITEMS = 2;
const MAX_LENGTH = 24;

/** Returns the schema of answers that a schema allows, and that end soon. */
export function bounded(schema) {
    const definitions = Object.entries(schema.$defs ?? {}).map(([name, part]) => [name, reduced(part)]);
    return { ...reduced(schema), $defs: Object.fromEntries(definitions) };
}

function reduced(schema) {
    if (schema.$ref) return { $ref: schema.$ref };
    if (schema.anyOf) return { oneOf: schema.anyOf.filter((part) => !hasOpenObject(part)).map(reduced) };
    if (schema.const !== undefined) return { const: schema.const };
    if (schema.enum) return { enum: schema.enum };
    switch (schema.type) {
        case "object":
            return { type: "object", properties: Object.fromEntries(demanded(schema).map(([name, part]) => [name, reduced(part)])) };
        case "array":
            return {
                type: "array",
                items: reduced(schema.items ?? {}),
                minItems: schema.minItems ?? 0,
                maxItems: Math.min(schema.maxItems ?? MAX_ITEMS, MAX_ITEMS),
            };
        case "integer":
        case "number":
        case "boolean":
            return { type: schema.type };
        default:
            return { type: "string", minLength: Math.max(schema.minLength ?? 0, 1), maxLength: MAX_LENGTH };
    }
}

/** Returns whether a schema has an object whose properties may be any. Its grammar would be that of an empty object. */
function hasOpenObject(schema) {
    if (schema.type !== "object") return false;
    const kept = demanded(schema);
    return kept.length === 0 || kept.some(([, part]) => hasOpenObject(part));
}

function demanded({ properties = {}, required = [] }) {
    return Object.entries(properties).filter(([name]) => required.includes(name) || KEPT.includes(name));
}
