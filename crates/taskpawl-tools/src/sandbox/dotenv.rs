//! Recognizes `.env` files, which hold the secrets of an environment.

use std::path::Path;

use crate::sandbox::names::is_skipped;

/// Endings of sample files, which hold no secrets.
const SAMPLES: [&str; 5] = [".example", ".sample", ".template", ".dist", ".defaults"];

/// Returns the part of a path that is a `.env` file. The path is relative to the root of a project.
///
/// Directories of dependencies and build results are not searched.
pub(super) fn part_of(path: &Path) -> Option<&Path> {
    let name_of = |above: &Path| above.file_name().map(|name| name.to_string_lossy().into_owned());
    let mut parts: Vec<&Path> = path.ancestors().filter(|part| part.file_name().is_some()).collect();
    parts.reverse();
    let mut looked_at = parts
        .into_iter()
        .take_while(|part| !part.parent().and_then(name_of).is_some_and(|above| is_skipped(&above)));
    looked_at.find(|part| name_of(part).is_some_and(|name| is_secret(&name.to_lowercase())))
}

/// Returns whether a lower-case file name is that of a `.env` file with secrets.
pub(super) fn is_secret(name: &str) -> bool {
    let is_env = name == ".env" || name == ".envrc" || name.starts_with(".env.");
    is_env && !SAMPLES.iter().any(|ending| name.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn such_a_file_is_known_by_its_path() {
        let part = |path: &str| part_of(Path::new(path)).map(|part| part.to_str().unwrap().to_owned());
        for path in [".env", "a/.env", "a/b/c/d/e/f/g/h/.env.local", ".ENV", "Target/.env"] {
            assert_eq!(part(path).as_deref(), Some(path));
        }
        assert_eq!(part(".env/bin/activate").as_deref(), Some(".env"));
        for path in ["", "env", ".env.example", ".environment", "node_modules/x/.env", "a/target/.env"] {
            assert_eq!(part(path), None, "{path}");
        }
    }
}
