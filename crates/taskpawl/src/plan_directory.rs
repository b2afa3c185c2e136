//! The plan files that a plan includes, in the directory of the project.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use taskpawl_model::plan::{IncludeError, IncludedText, PlanFiles};
use taskpawl_tools::read_if_there;

/// The largest included plan, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// The endings of plan files.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// A plan that was found by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedPlanText {
    /// The file; `None` for a plan that the program brings.
    pub path: Option<PathBuf>,
    /// The text.
    pub text: String,
}

/// Finds plans by their names, for tasks that include them.
#[derive(Clone)]
pub struct PlanNames(pub Arc<NameLookup>);

type NameLookup = dyn Fn(&str) -> Result<NamedPlanText, IncludeError> + Send + Sync;

impl fmt::Debug for PlanNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlanNames")
    }
}

/// Reads the plan files that tasks of a plan `include`.
///
/// A path begins at the directory of the file that includes it. Through links and `..`, too, it stays in the project, or
/// below the directory of the plan or of the file that includes it. A name without an ending is no path: see
/// [`is_name`](Self::is_name) and [`with_names`](Self::with_names).
#[derive(Debug, Clone)]
pub struct PlanDirectory {
    /// The project.
    root: PathBuf,
    /// The directory of the plan itself.
    directory: PathBuf,
    /// The file of the plan itself.
    file: Option<PathBuf>,
    /// The plans by name; without them, a name finds nothing.
    names: Option<PlanNames>,
}

impl PlanDirectory {
    /// Reads the plans that a file of the project includes, or one outside of it.
    pub fn of_file(root: &Path, file: &Path) -> Self {
        let file = real(file);
        let directory = file.parent().map_or_else(|| root.to_owned(), Path::to_owned);
        Self { root: real(root), directory, file: Some(file), names: None }
    }

    /// Reads the plans that a text includes. Its paths begin at `directory`.
    pub fn of_text(root: &Path, directory: &Path) -> Self {
        Self { root: real(root), directory: real(directory), file: None, names: None }
    }

    /// Also reads plans by their names.
    #[must_use]
    pub fn with_names(self, names: PlanNames) -> Self {
        Self { names: Some(names), ..self }
    }

    /// Returns whether `include` means a plan by its name: a word without a directory and an ending. `./check.yaml` is a path.
    pub fn is_name(include: &str) -> bool {
        !include.contains(['/', '.'])
    }

    /// Returns the file for messages, as in [`IncludedText::file`]: its path relative to the project, or absolute outside of it.
    pub fn shown(&self, path: &Path) -> String {
        let path = real(path);
        path.strip_prefix(&self.root).unwrap_or(&path).display().to_string()
    }

    fn named(&self, name: &str) -> Result<IncludedText, IncludeError> {
        let Some(names) = &self.names else {
            return Err(IncludeError::Unnamed { name: name.to_owned(), near: None });
        };
        let NamedPlanText { path, text } = (names.0)(name)?;
        let file = path.map_or_else(|| format!("<{name}>"), |path| self.shown(&path));
        Ok(IncludedText { file, text })
    }

    /// Returns the directory of a file that includes another one.
    fn directory_of(&self, by: Option<&str>) -> PathBuf {
        let directory = by.and_then(|by| Some(self.root.join(by).parent()?.to_owned()));
        directory.unwrap_or_else(|| self.directory.clone())
    }
}

impl PlanFiles for PlanDirectory {
    fn file(&self) -> Option<String> {
        self.file.as_deref().map(|file| self.shown(file))
    }

    fn read(&self, name: &str, by: Option<&str>) -> Result<IncludedText, IncludeError> {
        let file = name.to_owned();
        if Self::is_name(name) {
            return self.named(name);
        }
        let has_ending = |ending: &str| Path::new(name).extension().is_some_and(|found| found == ending);
        if !ENDINGS.into_iter().any(has_ending) {
            return Err(IncludeError::Ending { file });
        }
        let directory = self.directory_of(by);
        // A path that leads nowhere is missing, inside and outside of the project.
        let Ok(path) = directory.join(name).canonicalize() else {
            return Err(IncludeError::Missing { file });
        };
        let places = [&self.root, &self.directory, &directory];
        if !places.into_iter().any(|place| path.starts_with(place)) {
            return Err(IncludeError::Outside { file });
        }
        match read_if_there(&path, MAX_BYTES) {
            Ok(Some(text)) => Ok(IncludedText { file: self.shown(&path), text }),
            Ok(None) => Err(IncludeError::Missing { file }),
            Err(error) => Err(IncludeError::Unreadable { file, why: error.to_string() }),
        }
    }
}

/// Returns a path without links; as it is if nothing is there.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Returns the file that an `include` reads, or the kind of the refusal.
    fn read(files: &PlanDirectory, name: &str, by: Option<&str>) -> String {
        match files.read(name, by) {
            Ok(found) => found.file,
            Err(error) => format!("{error:?}").split([' ', '{']).next().unwrap_or_default().to_owned(),
        }
    }

    #[test]
    fn names_find_plans_of_a_program() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().canonicalize().unwrap();
        let own = root.join("plans/own.yaml");
        let find = move |name: &str| match name {
            "own" => Ok(NamedPlanText { path: Some(own.clone()), text: "tasks: []".to_owned() }),
            "bundled" => Ok(NamedPlanText { path: None, text: "tasks: []".to_owned() }),
            name => Err(IncludeError::Unnamed { name: name.to_owned(), near: None }),
        };
        let files = PlanDirectory::of_text(&root, &root).with_names(PlanNames(Arc::new(find)));
        for (name, expected) in [
            ("own", "plans/own.yaml"),
            ("bundled", "<bundled>"),
            ("other", "Unnamed"),
            ("own.yaml", "Missing"),
        ] {
            assert_eq!(read(&files, name, None), expected, "{name}");
        }
    }

    #[test]
    fn files_stay_in_the_project_or_below_the_plan() {
        let directory = tempfile::tempdir().unwrap();
        let top = directory.path().canonicalize().unwrap();
        for path in ["project/plans/sub", "other/deep"] {
            fs::create_dir_all(top.join(path)).unwrap();
        }
        for path in [
            "project/a.yaml",
            "project/plans/b.yaml",
            "project/plans/sub/c.json",
            "other/d.yml",
            "other/deep/e.yaml",
        ] {
            fs::write(top.join(path), "tasks: []").unwrap();
        }
        fs::write(top.join("project/.env"), "KEY=1").unwrap();
        fs::create_dir(top.join("project/folder.yaml")).unwrap();
        symlink(top.join("other/d.yml"), top.join("project/link.yaml")).unwrap();
        symlink(top.join("other"), top.join("project/linked")).unwrap();
        symlink("a.yaml", top.join("project/same.yaml")).unwrap();
        let root = top.join("project");
        let files = PlanDirectory::of_file(&root, &root.join("plans/b.yaml"));
        assert_eq!(files.file().as_deref(), Some("plans/b.yaml"));
        for (name, expected) in [
            ("sub/c.json", "plans/sub/c.json"),
            ("./sub/../b.yaml", "plans/b.yaml"),
            ("../a.yaml", "a.yaml"),
            ("../same.yaml", "a.yaml"),
            ("../none.yaml", "Missing"),
            ("../link.yaml", "Outside"),
            ("../linked/deep/e.yaml", "Outside"),
            ("../../other/d.yml", "Outside"),
            ("/etc/hostname.yaml", "Missing"),
            ("../.env", "Ending"),
            ("../folder.yaml", "Unreadable"),
            ("check", "Unnamed"),
        ] {
            assert_eq!(read(&files, name, None), expected, "{name}");
        }
        assert_eq!(read(&files, "../b.yaml", Some("plans/sub/c.json")), "plans/b.yaml");
        // A plan outside of the project includes files below its own directory.
        let outside = PlanDirectory::of_file(&root, &top.join("other/d.yml"));
        let deep = top.join("other/deep/e.yaml").display().to_string();
        assert_eq!(read(&outside, "deep/e.yaml", None), deep);
        assert_eq!(read(&outside, "../d.yml", Some(&deep)), top.join("other/d.yml").display().to_string());
        assert_eq!(read(&outside, "../project/a.yaml", None), "a.yaml");
        let text = PlanDirectory::of_text(&root, &root.join("plans"));
        assert_eq!((text.file(), read(&text, "b.yaml", None)), (None, "plans/b.yaml".to_owned()));
    }
}
