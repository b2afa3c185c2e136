//! The options in `#[tool(…)]`.

use syn::parse::{Parse, ParseStream};
use syn::{Ident, LitInt, LitStr, Token};

/// The options of a tool.
#[derive(Default)]
pub(crate) struct Attributes {
    /// The name in plans; without one, that of the function.
    pub(crate) name: Option<LitStr>,
    /// The longest duration of a call, in seconds.
    pub(crate) timeout_seconds: Option<LitInt>,
    /// The names of the hints that hold.
    pub(crate) hints: Vec<Ident>,
}

const HINTS: [&str; 4] = ["read_only", "idempotent", "destructive", "open_world"];

impl Parse for Attributes {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut attributes = Self::default();
        while !input.is_empty() {
            let option: Ident = input.parse()?;
            if option == "name" {
                input.parse::<Token![=]>()?;
                attributes.name = Some(input.parse()?);
            } else if option == "timeout_seconds" {
                input.parse::<Token![=]>()?;
                attributes.timeout_seconds = Some(input.parse()?);
            } else if HINTS.iter().any(|hint| option == hint) {
                attributes.hints.push(option);
            } else {
                let known = HINTS.join("`, `");
                let message = format!("use `name = \"…\"`, `timeout_seconds = …`, `{known}`");
                return Err(syn::Error::new(option.span(), message));
            }
            if !input.is_empty() {
                input.parse::<Token![,]>()?;
            }
        }
        Ok(attributes)
    }
}
