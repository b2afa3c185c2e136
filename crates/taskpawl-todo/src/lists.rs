//! The handle that all tools share: where lists are kept, and the lists that are in memory.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use taskpawl_manager::{Error, Manager, Source, SystemSource};
use taskpawl_model::ChecklistItem;
use taskpawl_tools::{CallContext, Tool};
use tokio::sync::watch;

use crate::checklist::{kept, shown};
use crate::dialect::Dialect;
use crate::file::FileError;
use crate::list::{Fault, Item, List};
use crate::mirror::Mirror;
use crate::prompt::prompt_block;
use crate::scope::ScopeRule;
use crate::tool::DialectTool;
use crate::vocabulary::of_dialect;
use crate::{conversation, queue};

/// What a list that nobody may write answers.
pub(crate) const READ_ONLY: &str = "This server is read-only";

/// As many earlier lists of a session are kept.
const MOST_HISTORY: usize = 100;

/// The to-do lists of a program: makes the tools of each dialect, which all share what it keeps. Cheap to clone.
///
/// ```
/// use taskpawl_todo::{Dialect, Lists, ScopeRule};
///
/// let lists = Lists::builder().scope(ScopeRule::fixed("talk-1")).build();
/// let names: Vec<_> =
///     lists.tools(Dialect::Session).iter().map(|tool| tool.spec().name.clone()).collect();
/// assert_eq!(names, ["todowrite", "todoread"]);
/// ```
#[derive(Debug, Clone)]
pub struct Lists(Arc<Shared>);

/// Says how [`Lists`] are kept. Everything has a default.
#[derive(Debug)]
pub struct ListsBuilder {
    base: Option<PathBuf>,
    queue_root: Option<PathBuf>,
    rule: ScopeRule,
    is_read_only: bool,
    is_kept: bool,
    source: Arc<dyn Source>,
}

#[derive(Debug)]
struct Shared {
    options: ListsBuilder,
    /// The scope of calls that share one because nobody named theirs.
    own: String,
    mirror: OnceLock<Mirror>,
    checklists: Mutex<BTreeMap<String, Checklist>>,
    sessions: Mutex<BTreeMap<String, Session>>,
}

/// A checklist with those who want to hear of it.
#[derive(Debug)]
struct Checklist {
    list: List,
    heard: watch::Sender<Vec<ChecklistItem>>,
}

#[derive(Debug, Default)]
struct Session {
    list: List,
    history: VecDeque<List>,
}

/// Items of a list could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The scope is not one of this dialect.
    #[error("`{scope}` is no {what}")]
    Scope {
        /// As given.
        scope: String,
        /// What it should be.
        what: &'static str,
    },
    /// The dialect keeps its lists elsewhere.
    #[error("no folder for queues is known here")]
    NoFolder,
    /// The file is not what it should be; it was left as it is.
    #[error("the list cannot be read: {detail}")]
    Corrupt {
        /// What does not fit.
        detail: String,
    },
    /// The operating system refused something.
    #[error("failed to read the list")]
    Io(#[source] std::io::Error),
    /// The store could not be read.
    #[error(transparent)]
    Store(#[from] Error),
}

impl From<FileError> for ListError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Corrupt { detail } => Self::Corrupt { detail },
            FileError::Io(error) => Self::Io(error),
        }
    }
}

impl ListsBuilder {
    /// Sets the directory beneath which lists of conversations are kept, in `.agents/tasks`. Default: the root of the call.
    #[must_use]
    pub fn base(mut self, base: impl Into<PathBuf>) -> Self {
        self.base = Some(base.into());
        self
    }

    /// Sets the directory beneath which the queues of agents are kept, in `system/agents/ID/tasks.json`. Without it they are refused.
    #[must_use]
    pub fn queue_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.queue_root = Some(root.into());
        self
    }

    /// Sets whose lists calls are about. Default: [`ScopeRule::of_call`].
    #[must_use]
    pub fn scope(mut self, rule: ScopeRule) -> Self {
        self.rule = rule;
        self
    }

    /// Answers reads and refuses writes.
    #[must_use]
    pub fn read_only(mut self, is_read_only: bool) -> Self {
        self.is_read_only = is_read_only;
        self
    }

    /// Leaves the last checklists to the store when the last handle is gone, for later review. Default: they are over then, and
    /// nobody draws them any more.
    #[must_use]
    pub fn keep(mut self, is_kept: bool) -> Self {
        self.is_kept = is_kept;
        self
    }

    /// Takes time and ids from `source`. Default: the clock, and random ids.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn Source>) -> Self {
        self.source = source;
        self
    }

    /// Returns the lists. Nothing is touched before the first call.
    pub fn build(self) -> Lists {
        let own = self.source.new_id();
        let (mirror, checklists, sessions) = Default::default();
        Lists(Arc::new(Shared { options: self, own, mirror, checklists, sessions }))
    }
}

impl Lists {
    /// Returns a builder.
    pub fn builder() -> ListsBuilder {
        ListsBuilder {
            base: None,
            queue_root: None,
            rule: ScopeRule::of_call(),
            is_read_only: false,
            is_kept: false,
            source: Arc::new(SystemSource),
        }
    }

    /// Returns the tools of a dialect, for a registry, a server, or any other host of tools.
    ///
    /// A host does not check arguments against their schemas ([`judged_args`](Tool::judged_args)): each dialect has answers of its own
    /// for wrong ones. A result is a text, in [`Value::String`](serde_json::Value): what the model is told, as it is. Refusals
    /// are [`ToolError::Answered`](taskpawl_tools::ToolError::Answered) with such a text as their result.
    pub fn tools(&self, dialect: Dialect) -> Vec<Arc<dyn Tool>> {
        let tool = |text| Arc::new(DialectTool::new(text, self.clone())) as Arc<dyn Tool>;
        of_dialect(dialect).map(tool).collect()
    }

    /// Tells of checklists through the events of a store from now on, so that other processes draw them and may empty them. Only the
    /// first store counts. In `files`, the directory for run locks and output files of that store, lies the lock by which others see
    /// that this process has not been killed.
    pub fn mirror_to(&self, manager: &Manager, files: &Path) {
        let mirror =
            Mirror::new(manager.clone(), files.to_owned(), self.0.own.clone(), self.0.options.is_kept);
        // A second one would tell everything twice.
        let _ = self.0.mirror.set(mirror);
    }

    /// Returns the checklist of a scope and hears of every change to it.
    pub fn watch(&self, scope: &str) -> watch::Receiver<Vec<ChecklistItem>> {
        let mut checklists = self.checklists();
        entry(&mut checklists, scope).heard.subscribe()
    }

    /// Returns the block that tells a model how far the checklist of a scope is: see [`prompt_block`].
    pub fn prompt_block(&self, scope: &str) -> String {
        let mut checklists = self.checklists();
        // What a store that does not answer would take away stays for now.
        let _ = self.follow(&mut checklists);
        let items = checklists.get(scope).map(|kept| kept.heard.borrow().clone());
        prompt_block(&items.unwrap_or_default())
    }

    /// Empties the checklist and the session list of a scope, as at the reset of a chat.
    ///
    /// # Errors
    /// The store could not be told; the lists are empty all the same.
    pub fn clear(&self, scope: &str) -> Result<(), Error> {
        self.sessions().remove(scope);
        let mut checklists = self.checklists();
        let Some(kept) = checklists.get_mut(scope) else { return Ok(()) };
        let was_empty = kept.list.len() == 0;
        kept.set(List::default());
        match self.0.mirror.get() {
            Some(mirror) if !was_empty => mirror.write(scope, Vec::new()),
            Some(_) | None => Ok(()),
        }
    }

    /// Tells the store that the checklists of this process are over, unless they are kept for review. The last handle that is dropped does
    /// so, too; a program whose threads may outlive its work says so itself.
    pub fn end(&self) {
        self.0.end();
    }

    /// Returns the scope of calls that share a list because nobody named theirs, and for dialects whose scope is fixed that one.
    pub fn default_scope(&self) -> String {
        let cx = CallContext::new("", "");
        let args = serde_json::Value::Null;
        let named = self.rule().named(&cx, crate::args::Args::of(&args), "");
        named.unwrap_or_else(|| self.0.own.clone())
    }

    /// Returns the items of a list: of a conversation or an agent from its file, of a checklist or a session from memory, and of a
    /// checklist that is not there from the store.
    ///
    /// # Errors
    /// The scope is not one of the dialect, or the list cannot be read.
    pub fn items(&self, dialect: Dialect, scope: &str) -> Result<Vec<Item>, ListError> {
        let not = |what| ListError::Scope { scope: scope.to_owned(), what };
        match dialect {
            Dialect::Conversation => {
                let base = self.base().unwrap_or(Path::new("."));
                let read =
                    conversation::items(base, scope).ok_or_else(|| not("id of a conversation: a UUID"))?;
                Ok(read?)
            }
            Dialect::Queue => {
                let root = self.queue_root().ok_or(ListError::NoFolder)?;
                let read = queue::items(root, scope, self.source().now());
                Ok(read.ok_or_else(|| not("id of an agent: the name of one folder"))??)
            }
            Dialect::Session => Ok(self.session(scope).iter().cloned().collect()),
            Dialect::Checklist | Dialect::TodoList => self.items_of_checklist(scope),
        }
    }

    /// Returns what `ik://system/agents/ID/tasks.json` names, as `{"items":[…]}`: the queue of an agent, without what is taken from it
    /// for a time. `None` for other addresses.
    ///
    /// # Errors
    /// The id would leave its folder, or the queue cannot be read.
    pub fn read_address(&self, address: &str) -> Option<Result<String, ListError>> {
        let agent = address.strip_prefix("ik://system/agents/")?.strip_suffix("/tasks.json")?;
        Some(self.items(Dialect::Queue, agent).map(|items| queue::listed(&items)))
    }

    fn items_of_checklist(&self, scope: &str) -> Result<Vec<Item>, ListError> {
        let own = self.checklists().get(scope).map(|kept| kept.list.iter().cloned().collect::<Vec<_>>());
        match (own, self.0.mirror.get()) {
            (None, Some(mirror)) => {
                let found = mirror.of_another(scope)?.map(|list| list.items);
                Ok(found.unwrap_or_default().iter().map(kept).collect())
            }
            (own, _) => Ok(own.unwrap_or_default()),
        }
    }

    /// Returns the lists that a session had before the one that it has, at most 100, the latest first.
    pub fn history(&self, scope: &str) -> Vec<Vec<Item>> {
        let sessions = self.sessions();
        let lists = sessions.get(scope).map(|session| session.history.iter().rev());
        lists.into_iter().flatten().map(|list| list.iter().cloned().collect()).collect()
    }

    pub(crate) fn rule(&self) -> &ScopeRule {
        &self.0.options.rule
    }

    pub(crate) fn base(&self) -> Option<&Path> {
        self.0.options.base.as_deref()
    }

    pub(crate) fn queue_root(&self) -> Option<&Path> {
        self.0.options.queue_root.as_deref()
    }

    pub(crate) fn is_read_only(&self) -> bool {
        self.0.options.is_read_only
    }

    pub(crate) fn source(&self) -> &dyn Source {
        &*self.0.options.source
    }

    pub(crate) fn own_scope(&self) -> &str {
        &self.0.own
    }

    fn checklists(&self) -> MutexGuard<'_, BTreeMap<String, Checklist>> {
        self.0.checklists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Session>> {
        self.0.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the checklist of a scope, after what others have asked for.
    pub(crate) fn checklist(&self, cx: &CallContext, scope: &str) -> List {
        let mut checklists = self.checklists();
        self.follow_for(cx, &mut checklists);
        checklists.get(scope).map(|kept| kept.list.clone()).unwrap_or_default()
    }

    /// Puts a checklist in the place of another, tells everybody, and returns it with what was unfinished and is gone.
    pub(crate) fn replace_checklist(
        &self,
        cx: &CallContext,
        scope: &str,
        items: Vec<Item>,
    ) -> Result<(List, Vec<Item>), Fault> {
        // The lock is held until the store is told, so that others hear of changes in their order.
        let mut checklists = self.checklists();
        self.follow_for(cx, &mut checklists);
        let kept = entry(&mut checklists, scope);
        let mut list = kept.list.clone();
        let dropped = list.replace(items)?;
        kept.set(list.clone());
        if let Some(mirror) = self.0.mirror.get()
            && let Err(error) = mirror.write(scope, list.iter().map(shown).collect())
        {
            cx.report(format!("the checklist was not told to other processes: {error}"));
        }
        Ok((list, dropped))
    }

    /// Empties the lists that somebody else has asked to be emptied.
    fn follow(&self, checklists: &mut BTreeMap<String, Checklist>) -> Result<(), Error> {
        let Some(mirror) = self.0.mirror.get() else { return Ok(()) };
        for scope in mirror.cleared()? {
            if let Some(kept) = checklists.get_mut(&scope) {
                kept.set(List::default());
            }
        }
        Ok(())
    }

    fn follow_for(&self, cx: &CallContext, checklists: &mut BTreeMap<String, Checklist>) {
        if let Err(error) = self.follow(checklists) {
            cx.report(format!("other processes could not be heard: {error}"));
        }
    }

    pub(crate) fn session(&self, scope: &str) -> List {
        self.sessions().get(scope).map(|session| session.list.clone()).unwrap_or_default()
    }

    /// Puts a session's list in the place of another, and returns it with what was unfinished and is gone.
    pub(crate) fn replace_session(&self, scope: &str, items: Vec<Item>) -> Result<(List, Vec<Item>), Fault> {
        let mut sessions = self.sessions();
        let session = sessions.entry(scope.to_owned()).or_default();
        let mut list = session.list.clone();
        let dropped = list.replace(items)?;
        session.history.push_back(std::mem::replace(&mut session.list, list.clone()));
        if session.history.len() > MOST_HISTORY {
            session.history.pop_front();
        }
        Ok((list, dropped))
    }
}

impl Checklist {
    fn set(&mut self, list: List) {
        self.heard.send_replace(list.iter().map(shown).collect());
        self.list = list;
    }
}

fn entry<'a>(checklists: &'a mut BTreeMap<String, Checklist>, scope: &str) -> &'a mut Checklist {
    let empty = || Checklist { list: List::default(), heard: watch::Sender::default() };
    checklists.entry(scope.to_owned()).or_insert_with(empty)
}

impl Shared {
    /// Without [`ListsBuilder::keep`] nobody is to go on drawing lists that are gone.
    fn end(&self) {
        let Some(mirror) = self.mirror.get().filter(|_| !self.options.is_kept) else { return };
        for scope in mirror.told() {
            // There is nobody left to be told that a store does not answer.
            let _ = mirror.write(&scope, Vec::new());
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end();
    }
}
