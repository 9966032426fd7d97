//! Metrics and status, over HTTP.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Path, Query, State},
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
    routing::get,
};
use hyper::server::conn::http1;
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use serde::Deserialize;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tracing::debug;
use vez_peer::{ask::Failure, name::Name, peer::Standings};

use crate::{clock, door::Door, node::Inner, resp, sockets};

const READERS: Door = Door { whom: "readers of metrics and status", most: 256, share: 8, full: FULL };
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// What a scraper takes for the text of OpenMetrics.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Who takes nothing of what it has asked for so long is not there.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many names are listed.
const MOST_NAMES: usize = 1000;

/// Which names.
#[derive(Deserialize)]
struct Listed {
    prefix: Option<String>,
    count: Option<usize>,
}

type Here = State<Arc<Inner>>;

/// Answers, for ever.
pub(crate) async fn serve(listener: TcpListener, inner: Arc<Inner>) {
    let routes = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .route("/v1/status", get(status))
        .route("/v1/locks", get(locks))
        .route("/v1/locks/{*name}", get(lock))
        .with_state(Arc::clone(&inner));
    let serve = |stream: TcpStream, from: SocketAddr| {
        if let Err(error) = sockets::prepare(&stream, PATIENCE) {
            debug!(%from, %error, "a connection could not be prepared");
        }
        // With a timer, who asks for nothing for half a minute is not kept.
        let asked = http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes.clone()));
        async move {
            if let Err(error) = asked.await {
                debug!(%from, %error, "a connection broke");
            }
        }
    };
    READERS.open(listener, inner, serve).await;
}

async fn metrics(State(inner): Here) -> Response {
    let looked = inner.engine.look(|peer| (peer.status(), peer.counts()));
    let (status, counts) = looked.unzip();
    let text = inner.engine.metrics.text(status.as_ref(), counts.unwrap_or_default());
    ([(CONTENT_TYPE, OPEN_METRICS)], text).into_response()
}

/// Whether this node serves everything now.
async fn ready(State(inner): Here) -> Response {
    let standing = inner.engine.look(|peer| peer.status().standing);
    match standing {
        Some(Standings::Settled { .. }) => "ready\n".into_response(),
        Some(standing) => {
            let (_, why, _) = resp::standing(&standing, clock::now());
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {why}\n")).into_response()
        }
        None => (StatusCode::SERVICE_UNAVAILABLE, "not ready: it begins\n").into_response(),
    }
}

async fn status(State(inner): Here) -> Response {
    Json(resp::status(&inner.engine).into_json()).into_response()
}

/// One that is no member knows of nobody, and does not say that there is nobody.
fn outside(inner: &Inner) -> Option<Response> {
    let outside = inner.engine.look(|peer| peer.view().is_none()) != Some(false);
    let answer = || json!({ "error": Failure::NoMember.to_string() });
    outside.then(|| (StatusCode::SERVICE_UNAVAILABLE, Json(answer())).into_response())
}

async fn locks(State(inner): Here, Query(query): Query<Listed>) -> Response {
    if let Some(outside) = outside(&inner) {
        return outside;
    }
    let prefix = query.prefix.unwrap_or_default();
    let listing = inner.list(prefix.as_bytes(), query.count.unwrap_or(MOST_NAMES).min(resp::MOST_COUNT)).await;
    Json(resp::listing(&listing).into_json()).into_response()
}

async fn lock(State(inner): Here, Path(name): Path<String>) -> Response {
    if let Some(outside) = outside(&inner) {
        return outside;
    }
    match Name::new(name.as_bytes()) {
        Ok(name) => Json(resp::picture(&inner.show(&name).await).into_json()).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, Json(json!({ "error": error.to_string() }))).into_response(),
    }
}
