//! The attribute `#[tool]` of taskpawl. Use it through `taskpawl::tool`, which has the documentation for users.

mod attributes;
mod expand;
mod signature;

use proc_macro::TokenStream;

/// Turns an async function into a tool; see `taskpawl::tool`.
#[proc_macro_attribute]
pub fn tool(attributes: TokenStream, function: TokenStream) -> TokenStream {
    let attributes = syn::parse_macro_input!(attributes as attributes::Attributes);
    let function = syn::parse_macro_input!(function as syn::ItemFn);
    expand::tool(&attributes, function).unwrap_or_else(syn::Error::into_compile_error).into()
}
