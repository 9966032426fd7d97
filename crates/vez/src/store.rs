//! What a node's folder holds: who it is, and the log of views. It is one small value, written as a whole.
//!
//! A view comes at most every few hundred milliseconds, and the log is cut to a few dozen entries: the whole of it is some
//! kilobytes. So there is nothing to be gained from writing parts of it, and nothing to be lost by a part that is missing.

use std::{fs, io, path::Path};

use redb::{Database, ReadableDatabase, TableDefinition};
use serde::{Deserialize, Serialize};
use vez_peer::{
    agreement::{Batch, Disk},
    charter::Charter,
    identity::{Address, ClusterId, Incarnation, MemberId},
    view::ViewNumber,
};

const TABLE: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("vez");
/// Another form of what is stored gets another key.
const KEY: &str = "node/1";
const FILE: &str = "node.redb";
/// What it is called until it is whole.
const HALF: &str = "node.redb.half";

/// What a folder holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Contents {
    /// Which disk it is.
    pub id: MemberId,
    /// The last process that began on it.
    pub incarnation: Incarnation,
    /// What its cluster goes by.
    pub charter: Charter,
    /// Where others may be.
    pub seeds: Vec<Address>,
    /// The cluster that it founds, or has founded.
    pub founds: Option<(ClusterId, ViewNumber)>,
    /// The log of views.
    pub disk: Disk,
}

/// A folder of a node that is open here, and nowhere else.
pub(crate) struct Store {
    database: Database,
    contents: Contents,
}

/// Why a folder cannot be used, or not any more.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another process uses it.
    #[error("the folder {0} is in use by another node; stop that one, or take another folder")]
    InUse(String),
    /// Its file is not one of a node, or one of another version.
    #[error("{0} is not the file of a node of this version: {1}; move it away, and join the cluster again")]
    Unreadable(String, String),
    /// The folder cannot be made, read or written.
    #[error("cannot use the folder {0}")]
    Io(String, #[source] io::Error),
    /// It cannot be written any more. What was to be written may be there or not.
    #[error("cannot write to the node's folder: {0}")]
    Write(String),
}

impl Store {
    /// Opens a folder, if it holds a node.
    pub(crate) fn open(folder: &Path) -> Result<Option<Self>, StoreError> {
        let file = folder.join(FILE);
        if !file.exists() {
            return Ok(None);
        }
        let database = Database::open(&file).map_err(|error| cannot_open(folder, error))?;
        let unreadable = |why: String| StoreError::Unreadable(file.display().to_string(), why);
        let bytes = read(&database).map_err(|error| unreadable(error.to_string()))?;
        // A file comes into being with its contents: one without is one of another version, or of something else.
        let bytes = bytes.ok_or_else(|| unreadable("it holds no node that this version knows of".into()))?;
        let contents = postcard::from_bytes(&bytes).map_err(|error| unreadable(error.to_string()))?;
        Ok(Some(Self { database, contents }))
    }

    /// Makes a node in a folder that holds none.
    pub(crate) fn create(folder: &Path, contents: Contents) -> Result<Self, StoreError> {
        let io = |error| StoreError::Io(folder.display().to_string(), error);
        fs::create_dir_all(folder).map_err(io)?;
        let (file, half) = (folder.join(FILE), folder.join(HALF));
        // Of two who make one at the same time, one comes later.
        let making = fs::File::open(folder).map_err(io)?;
        if making.try_lock().is_err() || file.exists() {
            return Err(StoreError::InUse(folder.display().to_string()));
        }
        // It has its name when it is whole: a crash on the way leaves a folder without a node.
        match fs::remove_file(&half) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(io(error)),
            _ => {}
        }
        let database = Database::create(&half).map_err(|error| cannot_open(folder, error))?;
        let mut store = Self { database, contents: contents.clone() };
        store.put(contents)?;
        fs::rename(&half, &file).map_err(io)?;
        sync_folder(folder).map_err(io)?;
        Ok(store)
    }

    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Writes a batch; when this returns it is durable.
    pub(crate) fn write(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let mut contents = self.contents.clone();
        contents.disk.write(batch);
        self.put(contents)
    }

    /// Writes everything anew; when this returns it is durable.
    pub(crate) fn put(&mut self, contents: Contents) -> Result<(), StoreError> {
        let bytes = postcard::to_stdvec(&contents).map_err(|error| StoreError::Write(error.to_string()))?;
        write(&self.database, &bytes).map_err(|error| StoreError::Write(error.to_string()))?;
        self.contents = contents;
        Ok(())
    }
}

fn read(database: &Database) -> Result<Option<Vec<u8>>, redb::Error> {
    let transaction = database.begin_read()?;
    let table = match transaction.open_table(TABLE) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    Ok(table.get(KEY)?.map(|value| value.value().to_vec()))
}

/// One transaction, synced when it is committed: that is what redb does unless it is told otherwise.
fn write(database: &Database, bytes: &[u8]) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    transaction.open_table(TABLE)?.insert(KEY, bytes)?;
    transaction.commit()?;
    Ok(())
}

fn cannot_open(folder: &Path, error: redb::DatabaseError) -> StoreError {
    let folder = folder.display().to_string();
    match error {
        redb::DatabaseError::DatabaseAlreadyOpen => StoreError::InUse(folder),
        redb::DatabaseError::Storage(redb::StorageError::Io(error)) if error.kind() != io::ErrorKind::InvalidData => {
            StoreError::Io(folder, error)
        }
        error => StoreError::Unreadable(format!("{folder}/{FILE}"), error.to_string()),
    }
}

/// A new file is there after a crash only if its folder was synced too.
fn sync_folder(folder: &Path) -> io::Result<()> {
    fs::File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use vez_peer::agreement::{Append, Ballot, Config, Entry, Position, Snapshot};

    use super::*;

    fn contents() -> Contents {
        Contents {
            id: MemberId(7),
            incarnation: Incarnation(1),
            charter: Charter::new(8),
            seeds: vec![Address::new("127.0.0.1:7402")],
            founds: None,
            disk: Disk::empty(),
        }
    }

    fn batches() -> [Batch; 3] {
        let config = Config { voters: BTreeSet::from([MemberId(7)]), ..Config::default() };
        let append = |term, index, entries: usize| Append {
            after: Position { term, index },
            entries: (0..entries).map(|_| Entry::Term(1)).collect(),
        };
        let snapshot = Snapshot { position: Position { term: 1, index: 2 }, config, views: None };
        [
            Batch { ballot: Some(Ballot { term: 1, vote: Some(MemberId(7)) }), ..Batch::default() },
            Batch { append: Some(append(0, 0, 3)), ..Batch::default() },
            Batch { snapshot: Some(snapshot), append: Some(append(1, 3, 1)), ..Batch::default() },
        ]
    }

    #[test]
    fn what_was_written_is_read_back_as_a_disk_has_it() {
        let folder = tempfile::tempdir().unwrap();
        assert!(Store::open(folder.path()).unwrap().is_none());
        let mut store = Store::create(folder.path(), contents()).unwrap();
        let mut disk = Disk::empty();
        for batch in batches() {
            store.write(&batch).unwrap();
            disk.write(&batch);
            drop(store);
            store = Store::open(folder.path()).unwrap().expect("a node");
            assert_eq!(*store.contents(), Contents { disk: disk.clone(), ..contents() });
        }
        assert_eq!(disk.entries.len(), 2);
    }

    #[test]
    fn a_folder_is_open_once() {
        let folder = tempfile::tempdir().unwrap();
        let _open = Store::create(folder.path(), contents()).unwrap();
        let error = Store::open(folder.path()).err().expect("it is open already");
        assert!(error.to_string().contains("is in use by another node"), "{error}");
    }

    #[test]
    fn what_was_half_made_is_made_anew() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(HALF), "half of a file").unwrap();
        assert!(Store::open(folder.path()).unwrap().is_none());
        drop(Store::create(folder.path(), contents()).unwrap());
        assert_eq!(*Store::open(folder.path()).unwrap().expect("a node").contents(), contents());
        assert!(Store::create(folder.path(), contents()).is_err(), "there is one");
    }

    #[test]
    fn a_node_of_another_version_is_no_empty_folder() {
        let folder = tempfile::tempdir().unwrap();
        let database = Database::create(folder.path().join(FILE)).unwrap();
        let transaction = database.begin_write().unwrap();
        transaction.open_table(TABLE).unwrap().insert("node/2", &b"another form"[..]).unwrap();
        transaction.commit().unwrap();
        drop(database);
        let error = Store::open(folder.path()).err().expect("it is not known what it holds");
        assert!(error.to_string().contains("is not the file of a node of this version"), "{error}");
    }

    #[test]
    fn a_file_of_something_else_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(FILE);
        fs::write(&file, "something of the user's").unwrap();
        let error = Store::open(folder.path()).err().expect("no node");
        assert!(error.to_string().contains("is not the file of a node"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"something of the user's");
    }
}
