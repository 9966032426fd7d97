//! The thread that writes to the disk: syncing takes long, and nothing else is to wait for it.

use std::{
    sync::{Arc, Weak, mpsc},
    thread,
};

use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use vez_peer::agreement::Batch;

use crate::{
    engine::Engine,
    store::{Contents, Store, StoreError},
};

/// The thread that writes. It ends when this is dropped.
pub(crate) struct DiskThread {
    errands: mpsc::Sender<Errand>,
}

/// What the thread is to do. Everything is done in order.
enum Errand {
    /// Write a batch of that process of the node, and tell it.
    Write(u64, Box<Batch>),
    /// Write everything anew.
    Renew(Edit, oneshot::Sender<Result<Contents, StoreError>>),
}

type Edit = Box<dyn FnOnce(Contents) -> Contents + Send>;

/// Whom the thread tells.
#[derive(Default)]
pub(crate) struct Told {
    engine: Mutex<Weak<Engine>>,
    /// The first write that failed. What is on the disk is not known any more, and nothing may be based on it.
    failed: Mutex<Option<StoreError>>,
    /// Whether the folder is closed.
    closed: watch::Sender<bool>,
}

impl DiskThread {
    pub(crate) fn start(store: Store, told: Arc<Told>) -> Self {
        let (errands, todo) = mpsc::channel();
        thread::Builder::new()
            .name("vez-disk".into())
            .spawn(move || {
                let closing = Closing(told);
                run(store, &todo, &closing.0);
            })
            .expect("a thread");
        Self { errands }
    }

    /// Writes a batch. The engine is told when it is durable.
    pub(crate) fn write(&self, life: u64, batch: Batch) {
        let _ = self.errands.send(Errand::Write(life, Box::new(batch))); // If it has ended, nothing is written, and nothing told.
    }

    /// Changes what the folder says about the node, after all that was to be written before.
    pub(crate) fn renew(
        &self,
        edit: impl FnOnce(Contents) -> Contents + Send + 'static,
    ) -> oneshot::Receiver<Result<Contents, StoreError>> {
        let (tell, told) = oneshot::channel();
        let _ = self.errands.send(Errand::Renew(Box::new(edit), tell));
        told
    }
}

impl Told {
    pub(crate) fn tell(&self, engine: &Arc<Engine>) {
        *self.engine.lock() = Arc::downgrade(engine);
    }

    /// Waits until the folder is closed.
    pub(crate) async fn closed(&self) {
        let _ = self.closed.subscribe().wait_for(|closed| *closed).await;
    }

    /// Why the disk cannot be used any more.
    pub(crate) fn failure(&self) -> Option<StoreError> {
        self.failed.lock().take()
    }
}

/// However the thread ends, the folder is closed, and nobody waits for it any longer.
struct Closing(Arc<Told>);

impl Drop for Closing {
    fn drop(&mut self) {
        if thread::panicking() {
            let failed = StoreError::Write("an assertion has failed".into());
            self.0.failed.lock().get_or_insert(failed);
        }
        let engine = self.0.engine.lock().upgrade();
        if let Some(engine) = engine {
            engine.close();
        }
        self.0.closed.send_replace(true);
    }
}

fn run(mut store: Store, todo: &mpsc::Receiver<Errand>, told: &Told) {
    for errand in todo {
        match errand {
            Errand::Write(life, batch) => {
                if let Err(error) = store.write(&batch) {
                    tracing::error!(%error, "this node ends here");
                    *told.failed.lock() = Some(error);
                    return;
                }
                if let Some(engine) = told.engine.lock().upgrade() {
                    engine.written(life);
                }
            }
            Errand::Renew(edit, tell) => {
                let contents = edit(store.contents().clone());
                let result = store.put(contents).map(|()| store.contents().clone());
                let _ = tell.send(result); // If nobody waits for it, the node has ended.
            }
        }
    }
}
