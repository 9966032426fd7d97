//! Panics of the code under examination, as values.

use std::{
    any::Any,
    cell::Cell,
    panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
    sync::Once,
};

thread_local! {
    static EXAMINING: Cell<bool> = const { Cell::new(false) };
}

/// Runs something that may panic, prints nothing if it does, and returns what the panic said.
pub fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    let (mut run, mut returned) = (Some(run), None);
    catch_dyn(&mut || returned = run.take().map(|run| run()))?;
    Ok(returned.expect("it has run, and did not panic"))
}

/// The same behind a pointer, so that it is compiled once.
fn catch_dyn(run: &mut dyn FnMut()) -> Result<(), String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |info| {
            if !EXAMINING.get() {
                usual(info);
            }
        }));
    });
    let outer = EXAMINING.replace(true);
    // What the handler leaves half done is thrown away with the panic: nobody looks at it again.
    let result = catch_unwind(AssertUnwindSafe(run));
    EXAMINING.set(outer);
    result.map_err(|panic| message(&*panic))
}

fn message(panic: &(dyn Any + Send)) -> String {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (None, Some(text)) => text.replace('\n', ";"),
        (None, None) => "a panic without a message".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_a_value() {
        assert_eq!(catch(|| 7), Ok(7));
        assert_eq!(catch(|| panic!("{} tokens", 2)), Err::<(), _>("2 tokens".to_owned()));
    }
}
