//! A server of models that replays prepared answers, on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// A prepared answer.
#[derive(Debug, Clone)]
pub(super) enum Answer {
    /// Status, further headers, and body.
    Whole(u16, &'static str, String),
    /// The beginning of an answer, which announces more than it has.
    Short(String),
    /// Nothing, until the client leaves.
    Hang,
}

/// A request as it arrived.
#[derive(Debug, Clone)]
pub(super) struct Received {
    pub(super) path: String,
    pub(super) head: String,
    pub(super) body: Value,
}

/// A server that gives one answer after the other, and the last one again.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Server {
    pub(super) fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received = Arc::new(Mutex::new(Vec::new()));
        let to = Arc::clone(&received);
        // The thread ends with the process of the tests; it waits for connections that do not come.
        thread::spawn(move || {
            for (number, stream) in listener.incoming().enumerate() {
                let answer = answers[number.min(answers.len() - 1)].clone();
                serve(stream.unwrap(), &answer, &to);
            }
        });
        Self { port, received }
    }

    pub(super) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

fn serve(stream: TcpStream, answer: &Answer, to: &Mutex<Vec<Received>>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        if let Some(number) = line.to_lowercase().strip_prefix("content-length:") {
            length = number.trim().parse().unwrap();
        }
        head += &line;
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    to.lock().unwrap().push(Received { path, head, body: serde_json::from_slice(&body).unwrap() });
    let mut stream = stream;
    // A client may leave before it has read everything.
    let _ = match answer {
        Answer::Whole(status, headers, body) => {
            let head = format!(
                "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n",
                body.len()
            );
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()))
        }
        Answer::Short(body) => {
            let head =
                format!("HTTP/1.1 200 X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len() + 10);
            stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()))
        }
        Answer::Hang => stream.read(&mut [0]).map(drop),
    };
}

/// Returns an answer in the format of chat completions.
pub(super) fn openai(text: &str) -> Answer {
    openai_with(text, "stop")
}

pub(super) fn openai_with(text: &str, finish: &str) -> Answer {
    let message = json!({"role": "assistant", "content": text});
    let usage = json!({"prompt_tokens": 1200, "completion_tokens": 300});
    let body =
        json!({"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage});
    Answer::Whole(200, "content-type: application/json\r\n", body.to_string())
}

/// Returns an answer in the format of the Messages API.
pub(super) fn anthropic(content: &Value, stop: &str) -> Answer {
    let usage = json!({"input_tokens": 1200, "output_tokens": 300});
    let body = json!({"type": "message", "content": [content], "stop_reason": stop, "usage": usage});
    Answer::Whole(200, "content-type: application/json\r\n", body.to_string())
}
