//! The parameters of a function that becomes a tool.

use syn::{Attribute, FnArg, Ident, ItemFn, Pat, PatType, ReturnType, Type};

/// An argument of the tool: a parameter of the function.
pub(crate) struct Argument {
    pub(crate) name: Ident,
    pub(crate) ty: Type,
    /// Documentation, which describes the argument in the schema, and attributes for serde and schemars.
    pub(crate) attributes: Vec<Attribute>,
}

/// The signature of a tool.
pub(crate) struct Signature {
    /// True if the first parameter is the context of the call.
    pub(crate) takes_context: bool,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) output: Type,
}

/// Reads the signature, and takes the attributes of the parameters away, which the compiler would refuse there.
pub(crate) fn read(function: &mut ItemFn) -> syn::Result<Signature> {
    let signature = &mut function.sig;
    let refused =
        |spanned: &dyn quote::ToTokens, message: &str| Err(syn::Error::new_spanned(spanned, message));
    if signature.asyncness.is_none() {
        return refused(
            &signature.fn_token,
            "a tool is an `async fn`; blocking work goes to `tokio::task::spawn_blocking`",
        );
    }
    if !signature.generics.params.is_empty() {
        return refused(&signature.generics, "a tool has no generic parameters: its arguments come as JSON");
    }
    let ReturnType::Type(_, output) = &signature.output else {
        return refused(&signature.ident, "a tool returns a `Result`, so that a call can fail");
    };
    let output = (**output).clone();
    let mut takes_context = false;
    let mut arguments = Vec::new();
    for (place, parameter) in signature.inputs.iter_mut().enumerate() {
        let FnArg::Typed(parameter) = parameter else {
            return refused(parameter, "a tool is no method; shared data comes from `CallContext::get`");
        };
        if place == 0 && is_context(&parameter.ty) {
            takes_context = true;
            continue;
        }
        arguments.push(argument(parameter)?);
    }
    Ok(Signature { takes_context, arguments, output })
}

fn argument(parameter: &mut PatType) -> syn::Result<Argument> {
    let Pat::Ident(pattern) = &*parameter.pat else {
        return Err(syn::Error::new_spanned(&parameter.pat, "an argument of a tool needs a name"));
    };
    if let Type::Reference(reference) = &*parameter.ty {
        let message = "an argument of a tool is owned: use `String` for `&str`, `Vec<T>` for `&[T]`";
        return Err(syn::Error::new_spanned(reference, message));
    }
    let name = pattern.ident.clone();
    let attributes = std::mem::take(&mut parameter.attrs);
    Ok(Argument { name, ty: (*parameter.ty).clone(), attributes })
}

fn is_context(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else { return false };
    ends_with(&reference.elem, "CallContext")
}

/// Returns whether the last part of a type's path is `name`.
pub(crate) fn ends_with(ty: &Type, name: &str) -> bool {
    let Type::Path(path) = ty else { return false };
    path.path.segments.last().is_some_and(|segment| segment.ident == name)
}
