//! Reference: commands of plan authors about tasks, calls, dependencies and parents.

use serde_json::Value;
use taskpawl_model::command::{Command, NewTask};
use taskpawl_model::task::{CallStatus, Mode, NewCall, Priority, Trigger};
use taskpawl_model::value::Map;
use taskpawl_model::value::check_id;

use super::items::{Call, Item, Reference, Stand, Taken, require};

impl Reference {
    /// Executes a command of an author; `None` for other commands.
    pub(super) fn carry_out_of_author(&mut self, command: &Command) -> Option<Taken> {
        Some(match command {
            Command::Create(task) => self.create(task),
            Command::Update { id, fields, if_version, restart: None } => self.update(id, fields, *if_version),
            Command::Delete { ids } => self.delete(ids),
            Command::AddCall { id, call } => self.add_call(id, call),
            Command::AddDependency { id, on } => self.add_dependency(id, on),
            Command::RemoveDependency { id, on } => self.remove_dependency(id, on),
            Command::Move { id, parent } => self.put_below(id, parent.as_deref()),
            _ => return None,
        })
    }

    /// Refuses changes to the work of a task that is in progress or done.
    fn check_open(&self, key: u32) -> Taken {
        require(!matches!(self.item(key).stand, Stand::Held(_) | Stand::Done))
    }

    fn check_form(&self, key: u32) -> Taken {
        let item = self.item(key);
        let needs_some = matches!(item.trigger, Trigger::AnyDone | Trigger::AnyFailed);
        require(!(needs_some && item.needs.is_empty()))?;
        require(!item.is_milestone || item.calls.is_empty())
    }

    /// Refuses new subtasks below a task that is in progress or has ended, except if it failed.
    fn check_place(&self, above: u32) -> Taken {
        let stand = &self.item(above).stand;
        require(!matches!(stand, Stand::Held(_) | Stand::Done | Stand::Cancelled | Stand::Skipped))
    }

    fn create(&mut self, task: &NewTask) -> Taken {
        let id = task.id.to_string();
        require(check_id(&id).is_ok() && !self.gone.contains(&id))?;
        require(self.items.values().all(|item| item.id != id))?;
        let needs = self.find_all(&task.dependencies)?.into_iter().collect();
        let above = match &task.parent {
            Some(parent) => Some(self.find(parent)?),
            None => None,
        };
        if let Some(above) = above {
            self.check_place(above)?;
        }
        let key = self.next;
        self.next += 1;
        let item = Item {
            id,
            stand: Stand::Todo,
            needs,
            above,
            trigger: task.spec.trigger(),
            is_milestone: task.spec.milestone,
            is_parallel: task.spec.mode() == Mode::Parallel,
            priority: task.spec.priority,
            calls: Vec::new(),
            attempt: 0,
        };
        self.items.insert(key, item);
        for call in &task.calls {
            self.push_call(key, call)?;
        }
        self.check_form(key)?;
        require(self.has_order())
    }

    fn push_call(&mut self, key: u32, call: &NewCall) -> Taken {
        let id = call.id.as_ref()?.to_string();
        let calls = &mut self.change(key).calls;
        require(check_id(&id).is_ok() && calls.iter().all(|other| other.id != id))?;
        calls.push(Call { id, tool: call.spec.tool_name.clone(), status: CallStatus::Pending });
        Some(())
    }

    fn update(&mut self, id: &str, fields: &Map, if_version: Option<u64>) -> Taken {
        let key = self.find(id)?;
        // The reference does not count versions. The commands only ever name a version that does not exist.
        require(if_version.is_none())?;
        for (field, value) in fields {
            self.set(key, field, value)?;
        }
        self.check_form(key)?;
        require(self.has_order())
    }

    fn set(&mut self, key: u32, field: &str, value: &Value) -> Taken {
        match field {
            "name" => require(value.as_str().is_some_and(|name| !name.trim().is_empty())),
            "priority" => {
                self.change(key).priority = Priority::from_word(value.as_str()?)?;
                Some(())
            }
            "trigger" => {
                self.check_open(key)?;
                self.change(key).trigger = Trigger::from_word(value.as_str()?)?;
                Some(())
            }
            "milestone" => {
                self.check_open(key)?;
                self.change(key).is_milestone = value.as_bool()?;
                Some(())
            }
            "mode" => {
                self.check_open(key)?;
                self.change(key).is_parallel = Mode::from_word(value.as_str()?)? == Mode::Parallel;
                Some(())
            }
            "dependencies" => {
                let ids: Vec<String> = serde_json::from_value(value.clone()).ok()?;
                let needs = self.find_all(&ids)?.into_iter().collect();
                if self.item(key).needs != needs {
                    self.check_open(key)?;
                    self.change(key).needs = needs;
                }
                Some(())
            }
            _ => None,
        }
    }

    fn delete(&mut self, ids: &[String]) -> Taken {
        let keys = self.find_all(ids)?;
        for key in &keys {
            require(!matches!(self.item(*key).stand, Stand::Held(_)))?;
            self.check_ended(*key)?;
            let needed = [self.dependents(*key), self.directly_below(*key)].concat();
            require(needed.iter().all(|other| keys.contains(other)))?;
        }
        for key in keys {
            if let Some(item) = self.items.remove(&key) {
                self.gone.insert(item.id);
            }
        }
        Some(())
    }

    fn add_call(&mut self, id: &str, call: &NewCall) -> Taken {
        let key = self.find(id)?;
        self.check_open(key)?;
        self.push_call(key, call)?;
        self.check_form(key)
    }

    fn add_dependency(&mut self, id: &str, on: &str) -> Taken {
        let (key, on) = (self.find(id)?, self.find(on)?);
        self.check_open(key)?;
        require(self.change(key).needs.insert(on))?;
        require(self.has_order())
    }

    fn remove_dependency(&mut self, id: &str, on: &str) -> Taken {
        let (key, on) = (self.find(id)?, self.find(on)?);
        self.check_open(key)?;
        require(self.change(key).needs.remove(&on))?;
        self.check_form(key)
    }

    fn put_below(&mut self, id: &str, parent: Option<&str>) -> Taken {
        let key = self.find(id)?;
        let above = match parent {
            Some(parent) => Some(self.find(parent)?),
            None => None,
        };
        if self.item(key).above == above {
            return Some(());
        }
        self.check_open(key)?;
        if let Some(above) = above {
            self.check_place(above)?;
        }
        self.change(key).above = above;
        require(self.has_order())
    }
}
