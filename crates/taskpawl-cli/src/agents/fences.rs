//! Detection of fenced code blocks in Markdown: marks in them are quoted text.

/// The opening or closing line of a code block.
struct Fence {
    sign: u8,
    length: usize,
}

/// Returns for each line if it is code or a fence. A fence without an end starts no code here: a block that is added
/// after it must be found again.
pub(super) fn code_lines(lines: &[&str]) -> Vec<bool> {
    let mut is_code = vec![false; lines.len()];
    // The length of the shortest unclosed fence of each sign. A longer fence is not closed either, so it needs no search: this
    // bounds the time for a text with many open fences.
    let mut endless = [usize::MAX; 2];
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let fence = Fence::begun(line).filter(|fence| fence.length < endless[fence.place()]);
        let end = fence.as_ref().map(|fence| lines[at + 1..].iter().position(|line| fence.is_ended(line)));
        at += 1;
        match (fence, end.flatten()) {
            (Some(_), Some(length)) => {
                is_code[at - 1..=at + length].fill(true);
                at += length + 1;
            }
            (Some(fence), None) => endless[fence.place()] = fence.length,
            (None, _) => {}
        }
    }
    is_code
}

impl Fence {
    fn begun(line: &str) -> Option<Self> {
        let (fence, rest) = Self::at(line)?;
        // A line such as `` ``` b ``` `` is inline code: the text after an opening fence of backquotes must not
        // contain one.
        (fence.sign == b'~' || !rest.contains('`')).then_some(fence)
    }

    fn is_ended(&self, line: &str) -> bool {
        Self::at(line).is_some_and(|(fence, rest)| {
            fence.sign == self.sign && fence.length >= self.length && rest.trim().is_empty()
        })
    }

    /// Returns the fence at the start of a line, and the text after it.
    fn at(line: &str) -> Option<(Self, &str)> {
        const DEEPEST: usize = 3;
        let text = line.trim_start_matches(' ');
        let sign = *text.as_bytes().first().filter(|sign| matches!(sign, b'`' | b'~'))?;
        let rest = text.trim_start_matches(char::from(sign));
        let length = text.len() - rest.len();
        (line.len() - text.len() <= DEEPEST && length >= 3).then_some((Self { sign, length }, rest))
    }

    fn place(&self) -> usize {
        usize::from(self.sign == b'~')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines, with a bar before those that are code.
    fn drawn(text: &str) -> String {
        let lines: Vec<&str> = text.lines().collect();
        let lines = code_lines(&lines).into_iter().zip(&lines);
        let bar = |is_code| if is_code { '|' } else { ' ' };
        let lines: Vec<_> =
            lines.map(|(is_code, line)| format!("{} {}", bar(is_code), line.trim_end())).collect();
        lines.join("\n") + "\n"
    }

    #[test]
    fn code_stands_between_fences_of_one_sign_and_length() {
        insta::assert_snapshot!(drawn("a\n```md\nb\n``\n~~~\n ```` \nc\n   ~~~~\n```\n~~~\nd\n  ~~~~~\ne"), @"
          a
        | ```md
        | b
        | ``
        | ~~~
        |  ````
          c
        |    ~~~~
        | ```
        | ~~~
        | d
        |   ~~~~~
          e
        ");
        insta::assert_snapshot!(drawn("    ```\na\n    ```\n``` b ```\nc\n```\nd\n```e\nf\n``` \n"), @"
              ```
          a
              ```
          ``` b ```
          c
        | ```
        | d
        | ```e
        | f
        | ```
        ");
    }

    #[test]
    fn what_nothing_ends_is_no_code() {
        insta::assert_snapshot!(drawn("````\n```\na\n```\n~~~\n~~~~x\nb"), @"
          ````
        | ```
        | a
        | ```
          ~~~
          ~~~~x
          b
        ");
        let many: String = (3..200).map(|length| format!("{}x\n", "`".repeat(length))).rev().collect();
        assert!(!drawn(&many).contains('|'));
    }
}
