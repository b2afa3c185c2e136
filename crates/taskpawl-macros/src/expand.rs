//! The code that `#[tool]` writes.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt as _;
use syn::{Attribute, Expr, ExprLit, ItemFn, Lit, LitStr, Meta, Type};

use crate::attributes::Attributes;
use crate::signature::{self, Argument, Signature, ends_with};

/// Returns a unit struct that has the function's name and is the tool.
pub(crate) fn tool(options: &Attributes, mut function: ItemFn) -> syn::Result<TokenStream> {
    let signature = signature::read(&mut function)?;
    let name = function.sig.ident.clone();
    let visibility = std::mem::replace(&mut function.vis, syn::parse_quote!(pub));
    let docs: Vec<Attribute> =
        function.attrs.iter().filter(|one| one.path().is_ident("doc")).cloned().collect();
    let parts = Parts {
        options,
        signature: &signature,
        name: &name.unraw().to_string(),
        description: &text_of(&docs),
    };
    let (arguments, implementation, with) = (parts.arguments(), parts.implementation(&name), parts.with());
    function.sig.ident = format_ident!("run");
    Ok(quote! {
        #(#docs)*
        #[allow(non_camel_case_types)]
        #[derive(Clone, Copy, Debug)]
        #visibility struct #name;

        impl #name {
            #function
        }

        const _: () = {
            #arguments
            impl #name {
                #with
            }
            #implementation
        };
    })
}

struct Parts<'a> {
    options: &'a Attributes,
    signature: &'a Signature,
    name: &'a str,
    description: &'a str,
}

impl Parts<'_> {
    /// Returns the name of the tool in plans.
    fn tool_name(&self) -> String {
        self.options.name.as_ref().map_or_else(|| self.name.to_owned(), LitStr::value)
    }

    /// Returns the struct that the arguments of a call are read into.
    fn arguments(&self) -> TokenStream {
        let fields = self
            .signature
            .arguments
            .iter()
            .map(|Argument { name, ty, attributes }| quote!(#(#attributes)* #name: #ty));
        quote! {
            #[derive(
                ::taskpawl::typed::macros::serde::Serialize,
                ::taskpawl::typed::macros::serde::Deserialize,
                ::taskpawl::typed::macros::schemars::JsonSchema
            )]
            #[serde(crate = "::taskpawl::typed::macros::serde", deny_unknown_fields)]
            #[schemars(crate = "::taskpawl::typed::macros::schemars")]
            struct Arguments { #(#fields),* }
        }
    }

    fn implementation(&self, name: &syn::Ident) -> TokenStream {
        let Self { signature: Signature { takes_context, arguments, output }, description, options, .. } =
            self;
        let tool_name = self.tool_name();
        let names: Vec<_> = arguments.iter().map(|argument| &argument.name).collect();
        let context = takes_context.then(|| quote!(&cx,));
        let hints = &options.hints;
        let timeout = options.timeout_seconds.as_ref().map(
            |seconds| quote!(let spec = spec.with_timeout(::core::time::Duration::from_secs(#seconds));),
        );
        quote! {
            #[::taskpawl::async_trait]
            impl ::taskpawl::tools::Tool for #name {
                fn spec(&self) -> &::taskpawl::tools::ToolSpec {
                    static SPEC: ::std::sync::OnceLock<::taskpawl::tools::ToolSpec> = ::std::sync::OnceLock::new();
                    SPEC.get_or_init(|| {
                        let spec = ::taskpawl::typed::spec::<Arguments, #output>(#tool_name, #description);
                        #[allow(unused_mut)]
                        let mut hints = ::taskpawl::tools::Hints::default();
                        #(hints.#hints = true;)*
                        #timeout
                        spec.with_hints(hints)
                    })
                }

                async fn call(
                    &self,
                    cx: ::taskpawl::tools::CallContext,
                    args: ::taskpawl::typed::macros::Value,
                ) -> ::core::result::Result<::taskpawl::typed::macros::Value, ::taskpawl::tools::ToolError> {
                    let Arguments { #(#names),* } = ::taskpawl::typed::arguments(#tool_name, args)?;
                    ::taskpawl::typed::result(Self::run(#context #(#names),*).await)
                }
            }
        }
    }

    /// Returns the function that makes a call of the tool for a task.
    fn with(&self) -> TokenStream {
        let tool_name = self.tool_name();
        let parameters = self.signature.arguments.iter().map(|Argument { name, ty, .. }| {
            // Only text is converted: a literal number has no type of its own that could be.
            if is_text(ty) { quote!(#name: impl ::core::convert::Into<#ty>) } else { quote!(#name: #ty) }
        });
        let values = self.signature.arguments.iter().map(|Argument { name, ty, .. }| {
            if is_text(ty) { quote!(#name: ::core::convert::Into::into(#name)) } else { quote!(#name) }
        });
        quote! {
            /// Makes a call of this tool for a task. It fails if an argument cannot be written as JSON.
            #[allow(dead_code)]
            pub fn with(
                #(#parameters),*
            ) -> ::core::result::Result<::taskpawl::model::task::NewCall, ::taskpawl::typed::macros::Error> {
                ::taskpawl::typed::call(#tool_name, &Arguments { #(#values),* })
            }
        }
    }
}

fn is_text(ty: &Type) -> bool {
    ends_with(ty, "String") || ends_with(ty, "PathBuf")
}

/// Returns the text of a function's documentation, which describes the tool.
fn text_of(docs: &[Attribute]) -> String {
    let lines = docs.iter().filter_map(|attribute| {
        let Meta::NameValue(pair) = &attribute.meta else { return None };
        let Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) = &pair.value else { return None };
        Some(text.value().trim().to_owned())
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}
