//! The command lines of coding agents that answer a single prompt: their arguments, what they need of the sandbox, and their replies.

use serde_json::Value;

use crate::planner::{Ending, TokenUsage};

/// A coding agent with a command for one prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kit {
    /// `claude -p`.
    Claude,
    /// `codex exec`.
    Codex,
    /// `gemini`, which answers one prompt where standard input is no terminal.
    Gemini,
}

/// The reply of a command.
#[derive(Debug, Clone, PartialEq)]
pub struct KitReply {
    /// The answer.
    pub text: String,
    /// The way in which it ended.
    pub ending: Ending,
    /// The consumption, as far as the command reports it.
    pub usage: TokenUsage,
}

impl Kit {
    /// Returns the kit of a command without arguments. A command with arguments is run as it is written.
    pub fn of(argv: &[String]) -> Option<Self> {
        let [program] = argv else { return None };
        match program.rsplit('/').next()? {
            "claude" => Some(Self::Claude),
            "codex" => Some(Self::Codex),
            "gemini" => Some(Self::Gemini),
            _ => None,
        }
    }

    /// Returns the arguments. The prompt comes on standard input.
    pub fn arguments(self, schema: &Value) -> Vec<String> {
        let words: &[&str] = match self {
            Self::Claude => &["-p", "--output-format", "json", "--json-schema"],
            // Its `--output-schema` demands that every property is required, which no field of a task is.
            Self::Codex => &["exec", "--skip-git-repo-check", "--sandbox", "read-only", "-"],
            Self::Gemini => &["--output-format", "json"],
        };
        let schema = (self == Self::Claude).then(|| schema.to_string());
        words.iter().map(|word| (*word).to_owned()).chain(schema).collect()
    }

    /// Returns the hosts that it has to reach.
    pub fn hosts(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["api.anthropic.com", "console.anthropic.com"],
            Self::Codex => &["api.openai.com", "auth.openai.com", "chatgpt.com"],
            Self::Gemini => {
                &["cloudcode-pa.googleapis.com", "generativelanguage.googleapis.com", "oauth2.googleapis.com"]
            }
        }
    }

    /// Returns the files and directories in the home directory with its settings and its session.
    pub fn places(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &[".claude", ".claude.json"],
            Self::Codex => &[".codex"],
            Self::Gemini => &[".gemini"],
        }
    }

    /// Returns the variables with its keys.
    pub fn variables(self) -> &'static [&'static str] {
        match self {
            Self::Claude => &["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"],
            Self::Codex => &["OPENAI_API_KEY", "CODEX_API_KEY"],
            Self::Gemini => &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        }
    }

    /// Reads what the command printed.
    ///
    /// # Errors
    /// It is not in the form of the command.
    pub fn read(self, output: &str) -> Result<KitReply, String> {
        match self {
            Self::Claude => claude(output),
            Self::Codex => Ok(KitReply::plain(output)),
            Self::Gemini => gemini(output),
        }
    }
}

impl KitReply {
    /// Returns the reply of a command that prints the answer alone.
    pub fn plain(output: &str) -> Self {
        Self { text: output.to_owned(), ending: Ending::Complete, usage: TokenUsage::default() }
    }
}

fn object(output: &str) -> Result<Value, String> {
    let value: Option<Value> = serde_json::from_str(output.trim()).ok();
    value.filter(Value::is_object).ok_or_else(|| "its output is not the expected JSON object".to_owned())
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

fn claude(output: &str) -> Result<KitReply, String> {
    let reply = object(output)?;
    let result = reply["result"].as_str().unwrap_or_default();
    if reply["is_error"] == true {
        return Err(result.to_owned());
    }
    let structured = reply.get("structured_output").filter(|value| value.is_object());
    let text = structured.map_or_else(|| result.to_owned(), Value::to_string);
    let usage = &reply["usage"];
    let cached = number(&usage["cache_creation_input_tokens"]) + number(&usage["cache_read_input_tokens"]);
    let usage = TokenUsage {
        input: number(&usage["input_tokens"]) + cached,
        output: number(&usage["output_tokens"]),
        cost: reply["total_cost_usd"].as_f64(),
    };
    Ok(KitReply { text, ending: Ending::Complete, usage })
}

fn gemini(output: &str) -> Result<KitReply, String> {
    let reply = object(output)?;
    if let Some(error) = reply["error"]["message"].as_str() {
        return Err(error.to_owned());
    }
    let text = reply["response"].as_str().ok_or("its output has no `response`")?.to_owned();
    let mut usage = TokenUsage::default();
    for model in reply["stats"]["models"].as_object().into_iter().flatten().map(|(_, model)| model) {
        let tokens = &model["tokens"];
        usage.add(TokenUsage {
            input: number(&tokens["prompt"]),
            output: number(&tokens["candidates"]),
            cost: None,
        });
    }
    Ok(KitReply { text, ending: Ending::Complete, usage })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_with_arguments_is_no_kit() {
        let argv = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(Kit::of(&argv(&["/opt/bin/claude"])), Some(Kit::Claude));
        assert_eq!(Kit::of(&argv(&["claude", "-p"])), None);
        assert_eq!(Kit::of(&argv(&["my-claude"])), None);
    }

    #[test]
    fn replies_are_read_with_their_usage() {
        let claude = json!({"type": "result", "is_error": false, "result": "words", "structured_output": {"tasks": []},
            "total_cost_usd": 0.02, "usage": {"input_tokens": 5, "cache_read_input_tokens": 100, "output_tokens": 7}});
        let reply = Kit::Claude.read(&claude.to_string()).unwrap();
        assert_eq!(
            (&*reply.text, reply.usage),
            ("{\"tasks\":[]}", TokenUsage { input: 105, output: 7, cost: Some(0.02) })
        );
        let gemini =
            json!({"response": "x", "stats": {"models": {"a": {"tokens": {"prompt": 3, "candidates": 4}}}}});
        let reply = Kit::Gemini.read(&gemini.to_string()).unwrap();
        assert_eq!((&*reply.text, reply.usage.input, reply.usage.output), ("x", 3, 4));
        assert_eq!(Kit::Codex.read("plan").unwrap().text, "plan");
        let refused = json!({"is_error": true, "result": "please log in"});
        assert_eq!(Kit::Claude.read(&refused.to_string()), Err("please log in".to_owned()));
        for kit in [Kit::Claude, Kit::Gemini] {
            assert!(kit.read("<html>").is_err() && kit.read("[]").is_err());
        }
    }
}
