//! The handle that all tools share: storage locations, and the lists in memory.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use taskpawl_manager::{Error, Manager, Source, SystemSource};
use taskpawl_model::task::ChecklistItem;
use taskpawl_tools::CallContext;
use tokio::sync::watch;

use crate::file::{FileError, MemoryFiles};
use crate::list::{Fault, Item, List};
use crate::mirror::Mirror;
use crate::prompt::prompt_block;
use crate::published::{kept, shown};
use crate::scope::ScopeRule;

/// Error text for a write to a read-only list.
pub(crate) const READ_ONLY: &str = "This server is read-only";

/// Number of earlier lists that are kept per session.
const MAX_HISTORY: usize = 100;

/// The to-do lists of a program. Creates the tools of each dialect, which share the lists. Cheap to clone.
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

/// Options for [`Lists`]. All of them have defaults.
#[derive(Debug)]
pub struct ListsBuilder {
    base: Option<PathBuf>,
    queue_root: Option<PathBuf>,
    rule: ScopeRule,
    is_read_only: bool,
    is_kept: bool,
    /// The lists of conversations, if they are kept in memory.
    memory: Option<MemoryFiles>,
    source: Arc<dyn Source>,
}

#[derive(Debug)]
struct Shared {
    options: ListsBuilder,
    /// Scope that calls share if neither the host nor the call names one.
    own: String,
    mirror: OnceLock<Mirror>,
    checklists: Mutex<BTreeMap<String, Checklist>>,
    sessions: Mutex<BTreeMap<String, Session>>,
}

/// A checklist with its subscribers.
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

/// The items of a list could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListError {
    /// The scope is invalid for the dialect.
    #[error("`{scope}` is not a valid {what}")]
    Scope {
        /// The scope as it was given.
        scope: String,
        /// The expected kind of scope, as a noun phrase.
        what: &'static str,
    },
    /// The dialect needs a directory that was not configured.
    #[error("no folder for queues is configured")]
    NoFolder,
    /// The file does not have the expected structure. It is unchanged.
    #[error("the list is invalid: {detail}")]
    Corrupt {
        /// Description of the fault.
        detail: String,
    },
    /// An operation of the file system failed.
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
    /// Sets the directory for lists of conversations, which are kept in `.agents/tasks` below it. Default: the project
    /// root of each call.
    #[must_use]
    pub fn base(mut self, base: impl Into<PathBuf>) -> Self {
        self.base = Some(base.into());
        self
    }

    /// Keeps lists of conversations in memory, for programs that work where there is no project. They end with the last
    /// handle.
    #[must_use]
    pub fn in_memory(mut self, is_in_memory: bool) -> Self {
        self.memory = is_in_memory.then(MemoryFiles::default);
        self
    }

    /// Sets the directory for queues of agents, which are kept in `system/agents/ID/tasks.json` below it. Without it,
    /// calls of the queue dialect are refused.
    #[must_use]
    pub fn queue_root(mut self, root: impl Into<PathBuf>) -> Self {
        self.queue_root = Some(root.into());
        self
    }

    /// Sets the rule for the scope of calls. Default: [`ScopeRule::of_call`].
    #[must_use]
    pub fn scope(mut self, rule: ScopeRule) -> Self {
        self.rule = rule;
        self
    }

    /// Allows reads and refuses writes.
    #[must_use]
    pub fn read_only(mut self, is_read_only: bool) -> Self {
        self.is_read_only = is_read_only;
        self
    }

    /// Leaves the last checklists in the store for later review when the last handle is dropped. By default they end
    /// with it and are not displayed any more.
    #[must_use]
    pub fn keep(mut self, is_kept: bool) -> Self {
        self.is_kept = is_kept;
        self
    }

    /// Sets the source of time and ids. Default: the system clock and random ids.
    #[must_use]
    pub fn source(mut self, source: Arc<dyn Source>) -> Self {
        self.source = source;
        self
    }

    /// Returns the lists. No file is accessed before the first call.
    pub fn build(self) -> Lists {
        let own = self.source.new_id();
        let (mirror, checklists, sessions) = Default::default();
        Lists(Arc::new(Shared { options: self, own, mirror, checklists, sessions }))
    }
}

impl Lists {
    /// Returns a builder with default options.
    pub fn builder() -> ListsBuilder {
        ListsBuilder {
            base: None,
            queue_root: None,
            rule: ScopeRule::of_call(),
            is_read_only: false,
            is_kept: false,
            memory: None,
            source: Arc::new(SystemSource),
        }
    }

    /// Publishes checklists through the events of a store from now on, so that other processes can display and clear
    /// them. Only the first call has an effect.
    ///
    /// `files` is the directory for run locks and output files of that store. It also holds the liveness lock by which
    /// other processes notice the end of this one.
    pub fn mirror_to(&self, manager: &Manager, files: &Path) {
        let mirror =
            Mirror::new(manager.clone(), files.to_owned(), self.0.own.clone(), self.0.options.is_kept);
        // A second mirror would publish every change twice.
        let _ = self.0.mirror.set(mirror);
    }

    /// Subscribes to the checklist of a scope. The receiver starts with the current list.
    pub fn watch(&self, scope: &str) -> watch::Receiver<Vec<ChecklistItem>> {
        let mut checklists = self.checklists();
        entry(&mut checklists, scope).heard.subscribe()
    }

    /// Returns the block that informs a model about the checklist of a scope: see [`prompt_block`].
    pub fn prompt_block(&self, scope: &str) -> String {
        let mut checklists = self.checklists();
        // If the store cannot be read, pending requests to clear a list wait for the next call.
        let _ = self.follow(&mut checklists);
        let items = checklists.get(scope).map(|kept| kept.heard.borrow().clone());
        prompt_block(&items.unwrap_or_default())
    }

    /// Clears the checklist and the session list of a scope, for example when a chat is reset.
    ///
    /// # Errors
    /// The store could not be informed. The lists are cleared nevertheless.
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

    /// Records in the store that the checklists of this process have ended, unless they are kept for review. Dropping
    /// the last handle does the same. A program whose threads may hold handles until it exits should call this itself.
    pub fn end(&self) {
        self.0.end();
    }

    /// Returns the scope of calls that name none: the fixed scope if there is one, otherwise the one that all such
    /// calls share.
    pub fn default_scope(&self) -> String {
        let cx = CallContext::new("", "");
        let args = serde_json::Value::Null;
        let named = self.rule().named(&cx, crate::args::Args::of(&args), "");
        named.unwrap_or_else(|| self.0.own.clone())
    }

    pub(crate) fn items_of_checklist(&self, scope: &str) -> Result<Vec<Item>, ListError> {
        let own = self.checklists().get(scope).map(|kept| kept.list.iter().cloned().collect::<Vec<_>>());
        match (own, self.0.mirror.get()) {
            (None, Some(mirror)) => {
                let found = mirror.of_another(scope)?.map(|list| list.items);
                Ok(found.unwrap_or_default().iter().map(kept).collect())
            }
            (own, _) => Ok(own.unwrap_or_default()),
        }
    }

    /// Returns the earlier lists of a session, at most 100, the latest first.
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

    /// Returns the lists of conversations in memory, if they are kept there.
    pub(crate) fn memory(&self) -> Option<MemoryFiles> {
        self.0.options.memory.clone()
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

    /// Returns the checklist of a scope, after applying requests of other processes to clear it.
    pub(crate) fn checklist(&self, cx: &CallContext, scope: &str) -> List {
        let mut checklists = self.checklists();
        self.follow_for(cx, &mut checklists);
        checklists.get(scope).map(|kept| kept.list.clone()).unwrap_or_default()
    }

    /// Replaces a checklist, publishes it, and returns it together with the unfinished items that are missing from it.
    pub(crate) fn replace_checklist(
        &self,
        cx: &CallContext,
        scope: &str,
        items: Vec<Item>,
    ) -> Result<(List, Vec<Item>), Fault> {
        // The mutex is held during the write to the store, so that events appear in the order of the changes.
        let mut checklists = self.checklists();
        self.follow_for(cx, &mut checklists);
        let kept = entry(&mut checklists, scope);
        let mut list = kept.list.clone();
        let dropped = list.replace(items)?;
        kept.set(list.clone());
        if let Some(mirror) = self.0.mirror.get()
            && let Err(error) = mirror.write(scope, list.iter().map(shown).collect())
        {
            cx.report(format!("failed to publish the checklist to other processes: {error}"));
        }
        Ok((list, dropped))
    }

    /// Clears the lists that other processes have asked to clear.
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
            cx.report(format!("failed to read changes of other processes: {error}"));
        }
    }

    pub(crate) fn session(&self, scope: &str) -> List {
        self.sessions().get(scope).map(|session| session.list.clone()).unwrap_or_default()
    }

    /// Replaces the list of a session; returns it together with the unfinished items that are missing from it.
    pub(crate) fn replace_session(&self, scope: &str, items: Vec<Item>) -> Result<(List, Vec<Item>), Fault> {
        let mut sessions = self.sessions();
        let session = sessions.entry(scope.to_owned()).or_default();
        let mut list = session.list.clone();
        let dropped = list.replace(items)?;
        session.history.push_back(std::mem::replace(&mut session.list, list.clone()));
        if session.history.len() > MAX_HISTORY {
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
    /// Ends the published lists, unless they are kept for review.
    fn end(&self) {
        let Some(mirror) = self.mirror.get().filter(|_| !self.options.is_kept) else { return };
        for scope in mirror.told() {
            // The error is ignored: during the drop there is nobody to report it to. Other processes still notice the
            // end by the lock.
            let _ = mirror.write(&scope, Vec::new());
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.end();
    }
}
