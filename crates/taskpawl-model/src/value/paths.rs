//! Paths that tasks write, in a form that can be compared: relative to the project, component by component.

/// Returns the paths in `writes`, without those below others. A glob stands for everything below its literal beginning.
pub fn written(writes: &[String]) -> Vec<String> {
    let mut paths: Vec<String> = writes.iter().map(|path| literal(path)).collect();
    paths.sort();
    paths.dedup();
    let all = paths.clone();
    paths.retain(|path| !above(path).any(|above| all.iter().any(|other| other == above)));
    paths
}

/// The prefix of a path that symbolic links lead out of the project. File names cannot contain this character.
const OUTSIDE: char = '\0';

/// Returns an absolute path outside the project in a form for comparisons. The caller has resolved links, so equal
/// files have equal texts.
pub fn outside(absolute: &str) -> String {
    format!("{OUTSIDE}{absolute}")
}

/// Returns a path in the form for people.
pub fn shown(path: &str) -> &str {
    path.strip_prefix(OUTSIDE).unwrap_or(path)
}

/// Returns whether two paths are equal or one contains the other.
pub fn overlap(one: &str, other: &str) -> bool {
    is_below(one, other) || is_below(other, one)
}

/// Returns whether a path equals another or lies below it. Everything lies below the empty path, which is the project.
pub fn is_below(path: &str, above: &str) -> bool {
    path.strip_prefix(above).is_some_and(|rest| above.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

/// Returns all ancestors of a path, starting with the project, which is the empty path.
pub(crate) fn above(path: &str) -> impl Iterator<Item = &str> {
    let root = (!path.is_empty()).then_some("");
    root.into_iter().chain(path.match_indices('/').map(|(at, _)| &path[..at]))
}

/// Returns a path relative to the project, without `.` and `..`; `None` if it leads out of the project.
pub fn beneath(path: &str) -> Option<String> {
    if path.starts_with('/') || path == "~" || path.starts_with("~/") {
        return None;
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the components before the first pattern. A path out of the project becomes the whole project, because it may
/// be anything.
fn literal(path: &str) -> String {
    let path = beneath(path).unwrap_or_default();
    let is_pattern = |part: &&str| part.contains(['*', '?', '[', '{']);
    path.split('/').take_while(|part| !is_pattern(part)).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_compared_by_component() {
        let texts = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            written(&texts(&["./a//b/", "a/b/c", "a/../d", "x/**/y", "x-y"])),
            ["a/b", "d", "x", "x-y"]
        );
        assert_eq!(written(&texts(&["*.rs", "a"])), [""]);
        assert_eq!(written(&texts(&["./o", "p/../o", "q/*/../r/*"])), ["o", "q/r"]);
        for outside in ["/etc", "..", "../x", "a/../../a", "~/x", "~"] {
            assert_eq!(beneath(outside), None, "{outside}");
            assert_eq!(written(&texts(&[outside])), [""], "{outside}");
        }
        assert_eq!(beneath("~x/.y/..z").as_deref(), Some("~x/.y/..z"));
        assert_eq!(above("a/b/c").collect::<Vec<_>>(), ["", "a", "a/b"]);
        assert_eq!(above("").count(), 0);
        let (data, below) = (outside("/data"), outside("/data/x"));
        assert_eq!(written(&[below.clone(), data.clone()]), std::slice::from_ref(&data));
        assert!(overlap(&data, &below) && !overlap(&data, "data") && overlap("", &data));
        assert_eq!((shown(&below), shown("a")), ("/data/x", "a"));
        assert!(overlap("a", "a/b") && overlap("", "a") && overlap("a", "a") && !overlap("a", "ab"));
    }
}
