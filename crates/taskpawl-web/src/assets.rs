//! The files of the page. They have no data, and need no token.

use crate::answer::{Problem, Reply};

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Name, content type and content of each file.
pub(crate) const ASSETS: [(&str, &str, &[u8]); 9] = [
    ("app.js", SCRIPT, include_bytes!("../assets/app.js")),
    ("dom.js", SCRIPT, include_bytes!("../assets/dom.js")),
    ("drawing.js", SCRIPT, include_bytes!("../assets/drawing.js")),
    ("list.js", SCRIPT, include_bytes!("../assets/list.js")),
    ("live.js", SCRIPT, include_bytes!("../assets/live.js")),
    ("log.js", SCRIPT, include_bytes!("../assets/log.js")),
    ("matrix.js", SCRIPT, include_bytes!("../assets/matrix.js")),
    ("page.css", "text/css; charset=utf-8", include_bytes!("../assets/page.css")),
    ("icon.svg", "image/svg+xml", include_bytes!("../assets/icon.svg")),
];

pub(crate) fn find(name: &str) -> Result<Reply, Problem> {
    let found = ASSETS.iter().find(|(asset, ..)| *asset == name);
    let (_, kind, bytes) = found.ok_or_else(|| Problem::missing("there is no such file"))?;
    Ok(Reply::File(kind, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_small() {
        let bytes: usize = ASSETS.iter().map(|(.., content)| content.len()).sum();
        assert!(bytes <= 100_000, "{bytes}");
    }
}
