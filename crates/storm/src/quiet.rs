//! Assertions that fail in the code under examination, as values.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind, set_hook},
    sync::Once,
};

/// Runs something whose assertions may fail, and returns what the first that does says.
pub(crate) fn catch<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    // Nothing here prints: whoever asked for storms is told what became of them.
    HOOK.call_once(|| set_hook(Box::new(|_| {})));
    // What is left half done is thrown away: nobody looks at it again.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(message(&*panic)))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("an assertion fails: {}", text.unwrap_or_default().replace('\n', ";"))
}
