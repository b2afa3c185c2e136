use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use hyper::Request;
use hyper::body::Incoming;

use crate::answer::Answer;

type Answering = Pin<Box<dyn Future<Output = Answer> + Send>>;

/// A protocol that another server offers at a path of its own. That server has checked the token of each request.
#[derive(Clone)]
pub struct Mount(Arc<dyn Fn(Request<Incoming>) -> Answering + Send + Sync>);

impl Mount {
    /// Creates it from the function that answers.
    pub fn new<F>(answer: impl Fn(Request<Incoming>) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        Self(Arc::new(move |request| Box::pin(answer(request))))
    }

    /// Answers a request.
    pub async fn answer(&self, request: Request<Incoming>) -> Answer {
        (self.0)(request).await
    }
}

impl fmt::Debug for Mount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Mount")
    }
}
