//! Planners: the trait, its requests and its replies.

use std::fmt;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Instructions to the planner.
    System,
    /// The goal, and the problems of an answer.
    User,
    /// An earlier answer of the planner.
    Assistant,
}

impl Role {
    /// Returns the name of the role in requests.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A message of a conversation with a planner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The text.
    pub text: String,
}

impl Message {
    /// Returns a message.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { role, text: text.into() }
    }
}

/// One question to a planner.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The conversation so far. The first message has the instructions, the last one is of the user.
    pub messages: &'a [Message],
    /// The JSON schema of the answer, for planners that take one.
    pub schema: &'a Value,
    /// The most tokens of the answer.
    pub max_tokens: u64,
    /// The time for all answers together, for messages.
    pub limit: Duration,
    /// The time by which the answer is needed.
    pub deadline: Instant,
}

impl Request<'_> {
    /// Returns the time that is left.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Returns the conversation as one text, for planners that take a single prompt.
    pub fn as_text(&self) -> String {
        let mut text = String::new();
        for message in self.messages {
            match message.role {
                Role::System | Role::User => text.push_str(&message.text),
                Role::Assistant => {
                    text.push_str("Your answer was:\n");
                    text.push_str(&message.text);
                }
            }
            text.push_str("\n\n");
        }
        text
    }
}

/// The way in which an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The planner finished it.
    Complete,
    /// A limit cut it off.
    CutOff,
    /// The planner declined to answer, with its words.
    Declined(String),
}

/// The consumption of a planner. Numbers that it does not report are 0 or `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TokenUsage {
    /// Tokens of the requests.
    pub input: u64,
    /// Tokens of the answers.
    pub output: u64,
    /// The price in US dollars, if the planner reports it.
    pub cost: Option<f64>,
}

impl TokenUsage {
    /// Describes the consumption; empty if the planner does not report it.
    pub fn described(&self) -> String {
        let tokens = format!("{} input and {} output tokens", self.input, self.output);
        let tokens = (self.input > 0 || self.output > 0).then_some(tokens);
        let cost = self.cost.map(|cost| format!("${cost:.4}"));
        tokens.into_iter().chain(cost).collect::<Vec<_>>().join(", ")
    }

    /// Adds the consumption of another request.
    pub fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cost = match (self.cost, other.cost) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
    }
}

/// The answer of a planner.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The text, which should contain a plan.
    pub text: String,
    /// The way in which it ended.
    pub ending: Ending,
    /// The consumption of this answer.
    pub usage: TokenUsage,
    /// The number of requests, repeated ones included.
    pub requests: u32,
}

/// The reason why a planner gave no answer. It never contains a key.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlannerError {
    /// No answer arrived in time.
    #[error("the planner `{planner}` did not answer within {after}")]
    Timeout {
        /// The name of the planner.
        planner: String,
        /// The time that it had.
        after: String,
    },
    /// The planner cannot be reached, or its answer is not in the expected form.
    #[error("the planner `{planner}` failed: {problem}")]
    Failed {
        /// The name of the planner.
        planner: String,
        /// The reason.
        problem: String,
    },
    /// A person stopped it.
    #[error("the planner `{planner}` was interrupted")]
    Interrupted {
        /// The name of the planner.
        planner: String,
        /// The exit code of the signal.
        exit: u8,
    },
}

/// A source of plans: a model, or a program that asks one.
pub trait Planner: fmt::Debug + Send + Sync {
    /// Returns the name of the planner, for people and for the record of a plan.
    fn name(&self) -> String;

    /// Asks for an answer. Blocks until it is there, or until the deadline of the request.
    ///
    /// # Errors
    /// The planner gave no answer.
    fn ask(&self, request: &Request<'_>) -> Result<Reply, PlannerError>;
}
