//! One connection to a node: requests, and what is answered.

use std::{collections::VecDeque, io, time::Duration};

use bytes::{Buf, BytesMut};
use redis_protocol::resp3::{decode::complete::decode, types::OwnedFrame};
use serde_json::{Map, Value};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use vez_peer::identity::ClusterId;

use super::{ClientError, PATIENCE};
use crate::sockets;

/// One connection to a node.
#[derive(Debug)]
pub(super) struct Wire {
    /// Which of the addresses that the client knows is at the other end.
    pub at: usize,
    stream: TcpStream,
    /// How long it may not be heard of.
    patience: Duration,
    input: BytesMut,
    /// What was told without being asked for.
    pushes: VecDeque<Push>,
    /// Which cluster the node belongs to, once it has told.
    cluster: Option<ClusterId>,
}

/// What a node tells without being asked; nothing where it says nil.
pub(super) type Push = Vec<Option<Vec<u8>>>;

/// What a node says.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Told {
    Text(String),
    Number(i64),
    Nil,
    Array(Vec<Value>),
    Map(Map<String, Value>),
    Error(String),
}

impl Told {
    pub(super) fn into_json(self) -> Value {
        match self {
            Self::Text(text) => text.into(),
            Self::Number(number) => number.into(),
            Self::Nil => Value::Null,
            Self::Array(all) => all.into(),
            Self::Map(map) => map.into(),
            Self::Error(text) => text.into(),
        }
    }
}

impl Wire {
    pub(super) async fn connect(address: &str, at: usize) -> Result<Self, ClientError> {
        let cannot = |error| ClientError::Connect(address.to_owned(), error);
        let stream = TcpStream::connect(address).await.map_err(cannot)?;
        sockets::prepare(&stream, PATIENCE).map_err(cannot)?;
        let (input, pushes) = (BytesMut::with_capacity(4096), VecDeque::new());
        Ok(Self { at, stream, patience: PATIENCE, input, pushes, cluster: None })
    }

    /// From now on it is not given up before nothing was heard for so long.
    pub(super) fn be_patient(&mut self, patience: Duration) -> io::Result<()> {
        if patience > self.patience {
            sockets::prepare(&self.stream, patience)?;
            self.patience = patience;
        }
        Ok(())
    }

    /// Whether it can be used again: it has neither ended, nor is there anything to read.
    pub(super) fn is_open(&mut self) -> bool {
        self.pushes.clear();
        let mut nothing = [0; 1];
        self.input.is_empty()
            && matches!(self.stream.try_read(&mut nothing), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Says something, and waits for the answer.
    pub(super) async fn call(&mut self, words: &[Vec<u8>]) -> Result<Told, ClientError> {
        self.say(words).await?;
        loop {
            if let Some(told) = self.hear().await? {
                return Ok(told);
            }
        }
    }

    /// Says who we are, and hears who the node is.
    pub(super) async fn greet(&mut self, hello: &[Vec<u8>]) -> Result<(), ClientError> {
        match self.call(hello).await? {
            Told::Error(text) => Err(ClientError::refused(&text)),
            Told::Map(map) if map.get("server").is_some_and(|server| *server == "vez") => {
                self.cluster = map.get("cluster").and_then(Value::as_str).and_then(|cluster| cluster.parse().ok());
                Ok(())
            }
            other => Err(ClientError::Strange(format!("{}", other.into_json()))),
        }
    }

    /// Which cluster the node belongs to. It must be a member: before that it may not know.
    pub(super) async fn cluster(&mut self) -> Result<ClusterId, ClientError> {
        if self.cluster.is_none() {
            self.greet(&[b"HELLO".to_vec()]).await?;
        }
        self.cluster.ok_or_else(|| ClientError::Strange("it does not tell its cluster".into()))
    }

    pub(super) async fn say(&mut self, words: &[Vec<u8>]) -> Result<(), ClientError> {
        let mut out = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            out.extend_from_slice(word);
            out.extend_from_slice(b"\r\n");
        }
        Ok(self.stream.write_all(&out).await?)
    }

    /// Waits until the node says something. An answer is returned; what was not asked for is kept. If this is dropped before it
    /// is done, nothing is lost.
    pub(super) async fn hear(&mut self) -> Result<Option<Told>, ClientError> {
        loop {
            let decoded = decode(&self.input).map_err(|_| ClientError::Strange("it speaks another protocol".into()))?;
            if let Some((frame, length)) = decoded {
                self.input.advance(length);
                return Ok(match frame {
                    OwnedFrame::Push { data, .. } => {
                        self.pushes.push_back(data.into_iter().map(bytes).collect());
                        None
                    }
                    frame => Some(told(frame)),
                });
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
        }
    }

    /// What was told without being asked for.
    pub(super) fn push(&mut self) -> Option<Push> {
        self.pushes.pop_front()
    }
}

fn told(frame: OwnedFrame) -> Told {
    match frame {
        OwnedFrame::SimpleError { data, .. } => Told::Error(data),
        OwnedFrame::BlobError { data, .. } => Told::Error(String::from_utf8_lossy(&data).into_owned()),
        OwnedFrame::Null => Told::Nil,
        OwnedFrame::Number { data, .. } => Told::Number(data),
        OwnedFrame::Array { data, .. } => Told::Array(data.into_iter().map(json).collect()),
        OwnedFrame::Map { data, .. } => {
            // The decoder has the last first.
            Told::Map(data.into_iter().rev().map(|(name, value)| (text(name), json(value))).collect())
        }
        other => Told::Text(text(other)),
    }
}

fn json(frame: OwnedFrame) -> Value {
    told(frame).into_json()
}

fn bytes(frame: OwnedFrame) -> Option<Vec<u8>> {
    match frame {
        OwnedFrame::BlobString { data, .. } | OwnedFrame::SimpleString { data, .. } => Some(data),
        OwnedFrame::Null => None,
        other => Some(format!("{other:?}").into_bytes()),
    }
}

fn text(frame: OwnedFrame) -> String {
    match frame {
        OwnedFrame::BlobString { data, .. } | OwnedFrame::SimpleString { data, .. } => {
            String::from_utf8_lossy(&data).into_owned()
        }
        other => format!("{other:?}"),
    }
}
