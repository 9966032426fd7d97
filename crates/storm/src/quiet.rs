//! Assertions that fail in the code under examination, as values.

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::Once,
};

thread_local! {
    static EXAMINING: Cell<bool> = const { Cell::new(false) };
}

/// Runs something whose assertions may fail, prints nothing if one does, and returns what it says.
pub(crate) fn catch<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !EXAMINING.get() {
                usual(info);
            }
        }));
    });
    EXAMINING.set(true);
    // What is left half done is thrown away: nobody looks at it again.
    let result = catch_unwind(AssertUnwindSafe(run));
    EXAMINING.set(false);
    result.unwrap_or_else(|panic| Err(message(&*panic)))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("an assertion fails: {}", text.unwrap_or_default().replace('\n', ";"))
}
