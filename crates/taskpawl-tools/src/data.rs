//! Values that a host gives to its own tools.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Values for the tools of a host, at most one of each type. Clones share the values.
#[derive(Clone, Default)]
pub struct Data(Arc<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Data {
    /// Returns these values and another one, which replaces one of its type.
    #[must_use]
    pub fn with<T: Any + Send + Sync>(&self, value: T) -> Self {
        let mut values = HashMap::clone(&self.0);
        values.insert(TypeId::of::<T>(), Arc::new(value));
        Self(Arc::new(values))
    }

    /// Returns the value of a type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.0.get(&TypeId::of::<T>())?.downcast_ref()
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values need not implement `Debug`, and may be secret.
        f.debug_struct("Data").field("values", &self.0.len()).finish_non_exhaustive()
    }
}
