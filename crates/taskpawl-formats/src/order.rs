//! The order in which a file has its fields: what is written over it has them in the same one.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::Value;

/// Names by which an object of a list is found again.
const NAMES: &[&str] = &["id", "uuid"];

/// The order of a value that is there.
#[derive(Debug, Clone, Default)]
pub(crate) enum Shape {
    /// There is none.
    #[default]
    None,
    /// A text or a number, as text: objects are known by these.
    Word(String),
    List {
        items: Vec<Shape>,
        by_name: BTreeMap<String, usize>,
    },
    Object {
        order: Vec<String>,
        fields: BTreeMap<String, Shape>,
    },
}

impl Shape {
    /// Returns that of a text; one that is no JSON has none.
    pub(crate) fn of(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Returns that of an object with one field, this one.
    pub(crate) fn below(self, name: &str) -> Self {
        Self::Object { order: vec![name.to_owned()], fields: BTreeMap::from([(name.to_owned(), self)]) }
    }

    /// Returns that of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object { fields, .. } => fields.get(name),
            Self::None | Self::Word(_) | Self::List { .. } => None,
        }
    }

    /// Returns that of the object of a list that is the same, or stands at the same place.
    fn item(&self, place: usize, value: &Value) -> Option<&Self> {
        let Self::List { items, by_name } = self else { return None };
        match NAMES.iter().find_map(|name| word(value.get(name)?)) {
            Some(name) => by_name.get(&name).and_then(|place| items.get(*place)),
            None => items.get(place),
        }
    }

    /// Returns an object of a list in one line, in the order that it has there.
    pub(crate) fn compact_item(&self, (place, value): (usize, &Value)) -> String {
        compact(value, self.item(place, value).unwrap_or(&Self::None))
    }

    fn list(items: Vec<Self>) -> Self {
        let name = |item: &Self| {
            NAMES.iter().find_map(|name| match item.field(name)? {
                Self::Word(word) => Some(word.clone()),
                Self::None | Self::List { .. } | Self::Object { .. } => None,
            })
        };
        let names = items.iter().enumerate().filter_map(|(place, item)| Some((name(item)?, place)));
        Self::List { by_name: names.collect(), items }
    }
}

fn word(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns a value in one line, in the order of a shape.
pub(crate) fn compact(value: &Value, shape: &Shape) -> String {
    let ordered = Ordered { value, shape: Some(shape) };
    serde_json::to_string(&ordered).expect("BUG: values are always valid JSON")
}

/// Returns a value in several lines, in the order of a shape.
pub(crate) fn pretty(value: &Value, shape: &Shape) -> String {
    let ordered = Ordered { value, shape: Some(shape) };
    serde_json::to_string_pretty(&ordered).expect("BUG: values are always valid JSON")
}

/// A value with the shape that it is written in: fields that are new follow by their names.
struct Ordered<'v> {
    value: &'v Value,
    shape: Option<&'v Shape>,
}

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.value {
            Value::Object(map) => {
                let mut out = serializer.serialize_map(Some(map.len()))?;
                let order: &[String] = match self.shape {
                    Some(Shape::Object { order, .. }) => order,
                    _ => &[],
                };
                let shape = |name: &String| self.shape.and_then(|shape| shape.field(name));
                let known = order.iter().filter_map(|name| map.get_key_value(name));
                let new = map.iter().filter(|(name, _)| shape(name).is_none());
                for (name, value) in known.chain(new) {
                    out.serialize_entry(name, &Ordered { value, shape: shape(name) })?;
                }
                out.end()
            }
            Value::Array(list) => {
                let shape = |(place, value)| self.shape.and_then(|shape| shape.item(place, value));
                let items = list.iter().enumerate().map(|item| Ordered { value: item.1, shape: shape(item) });
                serializer.collect_seq(items)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.value.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Shape;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::None)
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::None)
    }

    fn visit_i64<E>(self, number: i64) -> Result<Shape, E> {
        Ok(Shape::Word(number.to_string()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Shape, E> {
        Ok(Shape::Word(number.to_string()))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::None)
    }

    fn visit_str<E>(self, text: &str) -> Result<Shape, E> {
        Ok(Shape::Word(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Shape, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = list.next_element()? {
            items.push(item);
        }
        Ok(Shape::list(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let (mut order, mut fields) = (Vec::new(), BTreeMap::new());
        while let Some((name, shape)) = map.next_entry::<String, Shape>()? {
            // A name that is there twice stands where it stood first.
            if fields.insert(name.clone(), shape).is_none() {
                order.push(name);
            }
        }
        Ok(Shape::Object { order, fields })
    }
}

#[cfg(test)]
mod tests {
    use super::{Shape, compact};
    use serde_json::json;

    #[test]
    fn fields_stand_where_they_stood_and_new_ones_behind() {
        let before =
            r#"{"z":1,"list":[{"id":"b","y":1,"x":1},{"id":2,"b":1,"a":1},{"k":1,"j":2}],"a":1,"z":2}"#;
        let value = json!({
            "a": 2, "new": null, "z": 3, "also": {"b": 1, "a": 1},
            "list": [{"a": 1, "b": 1, "id": 2}, {"id": "b", "x": 1, "y": 1}, {"j": 1, "k": 1}, {"id": "c", "y": 1, "x": 1}],
        });
        assert_eq!(
            compact(&value, &Shape::of(before)),
            r#"{"z":3,"list":[{"id":2,"b":1,"a":1},{"id":"b","y":1,"x":1},{"k":1,"j":1},{"id":"c","x":1,"y":1}],"a":2,"also":{"a":1,"b":1},"new":null}"#
        );
        assert_eq!(compact(&value, &Shape::of("no JSON")), value.to_string());
    }
}
