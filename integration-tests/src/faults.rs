//! Enables faults by name.

use taskpawl_cli::faults as cli;
use taskpawl_engine::faults as engine;
use taskpawl_process::faults as process;
use taskpawl_store::faults as store;

/// The variable with the comma-separated names of faults.
pub const VARIABLE: &str = "TASKPAWL_FAULT";

/// Enables the faults of the environment for the rest of this process.
///
/// # Panics
/// A fault name is unknown: a control that breaks nothing would be green for the wrong reason.
pub fn enable_from_environment() {
    let names = std::env::var_os(VARIABLE).unwrap_or_default();
    for name in names.to_string_lossy().split(',').filter(|name| !name.is_empty()) {
        assert!(enable(name), "no fault `{name}`");
    }
}

/// Enables one fault. Returns false for an unknown name.
fn enable(name: &str) -> bool {
    match name {
        "AddAnything" => engine::enable(engine::Fault::AddAnything),
        "FreshKeys" => engine::enable(engine::Fault::FreshKeys),
        "RepeatEverything" => engine::enable(engine::Fault::RepeatEverything),
        "KeepSecrets" => engine::enable(engine::Fault::KeepSecrets),
        "NoStartRecord" => engine::enable(engine::Fault::NoStartRecord),
        "NoTable" => engine::enable(engine::Fault::NoTable),
        "NoFencing" => engine::enable(engine::Fault::NoFencing),
        "NoLastLook" => engine::enable(engine::Fault::NoLastLook),
        "RawTerminal" => cli::enable(cli::Fault::RawTerminal),
        "SkipSync" => store::enable(store::Fault::SkipSync),
        "AnswerEarly" => store::enable(store::Fault::AnswerEarly),
        "DecideBeforeLock" => store::enable(store::Fault::DecideBeforeLock),
        "NoLockFile" => store::enable(store::Fault::NoLockFile),
        "NoSweep" => process::enable(process::Fault::NoSweep),
        "EarlyLock" => process::enable(process::Fault::EarlyLock),
        "OnlyGroup" => process::enable(process::Fault::OnlyGroup),
        "SharedProcesses" => process::enable(process::Fault::SharedProcesses),
        // Simulate kernels without Landlock or without the filter, to test the protections that remain.
        "NoLandlock" => process::enable(process::Fault::NoLandlock),
        // Simulate systems with fewer namespaces, and older kernels.
        "NoMounts" => process::enable(process::Fault::NoMounts),
        "NoNamespaces" => process::enable(process::Fault::NoNamespaces),
        "OldLandlock" => process::enable(process::Fault::OldLandlock),
        "NoConnectBroker" => process::enable(process::Fault::NoConnectBroker),
        "CheckedConnect" => process::enable(process::Fault::CheckedConnect),
        "AnyDestination" => process::enable(process::Fault::AnyDestination),
        "NoFilter" => process::enable(process::Fault::NoFilter),
        "SwallowErrors" => store::enable(store::Fault::SwallowErrors),
        "MigrateInPieces" => store::enable(store::Fault::MigrateInPieces),
        _ => return false,
    }
    true
}
