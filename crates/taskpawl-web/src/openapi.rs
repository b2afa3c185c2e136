//! The description of the JSON API. It is kept as a file, which generators of clients read without a server.

/// The description, as `OpenAPI` 3.1.
pub(crate) const TEXT: &str = include_str!("../openapi.json");

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;
    use crate::routes::{Access, ROUTES};

    /// The operations of the description: method, path with `{}` for a value, and scope.
    fn described() -> BTreeSet<(String, String, String)> {
        let text: Value = serde_json::from_str(TEXT).unwrap();
        let paths = text["paths"].as_object().unwrap();
        let operations = paths.iter().flat_map(|(path, operations)| {
            operations.as_object().unwrap().iter().map(move |(method, operation)| {
                let named = |parameter: &Value| {
                    parameter["in"] == "path"
                        && path.contains(&format!("{{{}}}", parameter["name"].as_str().unwrap()))
                };
                let values = operation["parameters"]
                    .as_array()
                    .map_or(0, |all| all.iter().filter(|one| named(one)).count());
                assert_eq!(
                    values,
                    path.matches('{').count(),
                    "{method} {path} describes the values of its path"
                );
                let scope = operation["x-scope"].as_str().unwrap().to_owned();
                (method.to_uppercase(), path.replace("{id}", "{}").replace("{name}", "{}"), scope)
            })
        });
        operations.collect()
    }

    #[test]
    fn it_describes_each_route_and_nothing_else() {
        let routes = ROUTES.iter().filter(|route| route.path.starts_with("/api/"));
        let routes: BTreeSet<_> = routes
            .map(|route| {
                let Access::Token(right) = route.access else { panic!("{} is open", route.path) };
                (route.method.to_string(), route.path.to_owned(), right.as_str().to_owned())
            })
            .collect();
        assert_eq!(described(), routes);
    }

    #[test]
    fn its_references_exist() {
        let text: Value = serde_json::from_str(TEXT).unwrap();
        let references = TEXT.split("\"$ref\": \"#").skip(1).map(|rest| rest.split('"').next().unwrap());
        let missing: Vec<&str> = references.filter(|reference| text.pointer(reference).is_none()).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }
}
