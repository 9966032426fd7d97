//! What came out of an emulation, and what the simulator says of the same.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc, time::Duration};

use serde::Serialize;
use vez_algorithms::{
    Model, Order, Timing,
    catalog::Entry,
    link::{Labour, Nanos, Service},
};
use vez_lab::{
    named::{self, Detector},
    sim::{Arrivals, Config, DelayLaw, Fault, Faults, Measured, Metrics, Report},
    stats::Interval,
};

use crate::{clock::seconds, control::Account, settings::Settings, transport::Transport};

/// How many runs the simulator makes for comparison.
const SIMULATED_RUNS: u64 = 20;

/// What came out.
pub struct Outcome {
    /// How it went wrong, if it did.
    pub failure: Option<Failure>,
    /// The same as a simulation reports. Times are in seconds.
    pub report: Report,
    /// What only sockets have.
    pub emulation: Emulation,
    /// The lines of the trace, in the order of their time, if they were wanted.
    pub trace: Vec<String>,
}

/// A run that did not reach its end.
#[derive(Clone, PartialEq, Debug, thiserror::Error)]
#[error("{what}")]
pub struct Failure {
    /// What happened.
    pub what: String,
    /// Whether a law was broken. Otherwise nothing moves any more.
    pub law_broken: bool,
}

/// What only sockets have.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Emulation {
    /// Which sockets.
    pub transport: Transport,
    /// Whether each node was a process.
    pub processes: bool,
    /// Where the nodes listened.
    pub addresses: Vec<SocketAddr>,
    /// What the links owed the algorithm.
    pub service: Service,
    /// How likely it was that a frame got lost, on purpose.
    pub loss: f64,
    /// How many did.
    pub lost: u64,
    /// What the links had to do for it: messages that the algorithm does not know of.
    pub link: Labour,
    /// What arrived and was none of ours, by kind.
    pub refused: BTreeMap<String, u64>,
    /// How long a message took until the algorithm had it: the middle, 95 of 100, 99 of 100.
    pub delay_quantiles: [f64; 3],
    /// How long the slowest took.
    pub slowest: f64,
    /// How long a client was inside on average: what it wanted to, and until the referee had heard of it.
    pub stay: f64,
    /// What the simulator says of it; nothing if it does not come to an end.
    pub simulated: Option<Simulated>,
}

/// What the simulator says, under the load and with the delays and the losses that were measured.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Simulated {
    /// Messages an entry.
    pub messages_per_entry: Interval,
    /// How far one run differs from another: a standard deviation.
    pub spread: f64,
    /// How often the law was broken in all runs: some delay was longer than the algorithm takes to be possible.
    pub violations: u64,
}

impl Simulated {
    fn of(report: &Report) -> Self {
        let messages_per_entry = report.messages_per_entry;
        // The interval is 2.093 standard errors wide to each side: Student's quantile for 20 runs.
        let standard_error = messages_per_entry.ci95.unwrap_or(0.0) / 2.093;
        let spread = standard_error * (SIMULATED_RUNS as f64).sqrt();
        Self { messages_per_entry, spread, violations: report.violations }
    }
}

/// What the nodes have done, together.
#[derive(Default)]
pub(crate) struct Sum {
    pub(crate) sent: BTreeMap<String, u64>,
    received: Vec<u64>,
    lost: u64,
    labour: Labour,
    refused: BTreeMap<String, u64>,
    delays: Vec<f64>,
    slowest: f64,
    stays: u64,
    inside: Nanos,
    requests: u64,
    late: Nanos,
    timers: u64,
    timers_late: Nanos,
}

impl Sum {
    pub(crate) fn of(accounts: &[Option<Account>]) -> Self {
        let mut sum = Self::default();
        for account in accounts {
            sum.received.push(account.as_ref().map_or(0, |account| account.deeds.received));
            let Some(account) = account else { continue };
            for (kind, count) in &account.deeds.sent {
                *sum.sent.entry(kind.clone()).or_default() += count;
            }
            for (kind, count) in &account.refused {
                *sum.refused.entry(kind.clone()).or_default() += count;
            }
            sum.lost += account.deeds.lost;
            sum.labour.add(account.deeds.labour);
            sum.delays.extend(&account.deeds.delays);
            sum.slowest = sum.slowest.max(account.deeds.slowest);
            sum.stays += account.stays;
            sum.inside += account.inside;
            sum.requests += account.requests;
            sum.late += account.late;
            sum.timers += account.deeds.fired;
            sum.timers_late += account.deeds.late;
        }
        sum.delays.sort_by(f64::total_cmp);
        sum
    }

    fn delay_quantile(&self, share: f64) -> f64 {
        let place = (self.delays.len() as f64 * share) as usize;
        self.delays.get(place.min(self.delays.len().saturating_sub(1))).copied().unwrap_or(0.0)
    }

    /// The simulation of the same: under the load as it was, not as it was meant to be, and with timers as late as they were.
    /// Delays that an algorithm takes to be impossible may break its law there; that is counted, and it goes on.
    pub(crate) fn config(&self, order: Order, settings: &Settings, service: Service, entries: u64) -> Config {
        let mean = |total: Nanos, count: u64| seconds(total) / count.max(1) as f64;
        let think = settings.think + mean(self.late, self.requests);
        let delays: Vec<f64> = if self.delays.is_empty() { vec![1e-6] } else { self.delays.clone() };
        let late = Duration::from_nanos(self.timers_late / self.timers.max(1));
        let mut system = settings.system.clone();
        system.retry = system.retry.start + late..system.retry.end + late;
        system.patience += late;
        system.period += late;
        let mut faults: Vec<(f64, Fault)> =
            settings.crashes.iter().map(|crash| (crash.at, Fault::Crash(crash.node))).collect();
        if service == Service::Once && settings.loss > 0.0 {
            faults.push((0.0, Fault::Loss(settings.loss)));
        }
        Config {
            system,
            arrivals: if think > 0.0 { Arrivals::Closed { rate: 1.0 / think } } else { Arrivals::Saturated },
            hot: None,
            askers: settings.askers,
            hold: if self.stays > 0 { mean(self.inside, self.stays) } else { settings.hold },
            delay: (delays.iter().sum::<f64>() / delays.len() as f64).max(1e-6),
            delay_law: DelayLaw::Measured(Arc::from(delays)),
            order: if settings.transport == Transport::Tcp { Order::Fifo } else { order },
            faults: Faults::new(faults),
            keep_going: true,
            until: None,
            entries: entries.max(1),
            warmup: 0,
            runs: 0..SIMULATED_RUNS,
            seed: settings.seed,
        }
    }

    /// Puts everything together.
    pub(crate) fn outcome(
        self,
        entry: &Entry,
        settings: &Settings,
        (processes, addresses): (bool, Vec<SocketAddr>),
        metrics: Metrics,
        elapsed: f64,
        failure: Option<Failure>,
    ) -> Outcome {
        let failure = failure.map(|failure| self.explained(failure, settings, &entry.assumptions));
        let service = settings.service(&entry.assumptions);
        let config = self.config(entry.assumptions.order, settings, service, metrics.entries());
        let mut measured = metrics.measured(elapsed, Duration::from_secs_f64(elapsed));
        self.complete(&mut measured);
        let asked_for = Config {
            system: settings.system.clone(),
            arrivals: if settings.think > 0.0 {
                Arrivals::Closed { rate: 1.0 / settings.think }
            } else {
                Arrivals::Saturated
            },
            hold: settings.hold,
            ..config.clone()
        };
        let report = Report::new(entry, &asked_for, vec![measured]);
        let simulated = if failure.is_some() {
            None
        } else {
            // It only takes a moment: nobody waits for sockets there.
            let run = named::run(entry.name, Detector::HiAdsd, &config, || Duration::ZERO, &|_| {});
            run.expect("it is in the catalog").ok().map(|report| Simulated::of(&report))
        };
        let delay_quantiles = [0.5, 0.95, 0.99].map(|share| self.delay_quantile(share));
        let emulation = Emulation {
            transport: settings.transport,
            processes,
            addresses,
            service,
            loss: settings.loss,
            lost: self.lost,
            link: self.labour,
            refused: self.refused,
            delay_quantiles,
            stay: config.hold,
            slowest: self.slowest,
            simulated,
        };
        Outcome { failure, report, emulation, trace: Vec::new() }
    }

    /// An algorithm that counts on time may have been let down by the machine.
    fn explained(&self, failure: Failure, settings: &Settings, model: &Model) -> Failure {
        let bound = settings.system.patience.as_secs_f64() / 2.0;
        if model.timing == Timing::Any {
            return failure;
        }
        if self.slowest <= bound {
            let what = if settings.loss > 0.0 && settings.service(model) == Service::Once {
                let what = "by chance a node may seem dead when that many messages are lost: try less --loss";
                format!("{}; {what}", failure.what)
            } else {
                failure.what
            };
            return Failure { what, ..failure };
        }
        let (slowest, bound) = (self.slowest * 1e3, bound * 1e3);
        let what = format!(
            "{}; a message took {slowest:.0} ms, and at most {bound:.0} ms is taken for granted: try a longer --patience",
            failure.what
        );
        Failure { what, ..failure }
    }

    /// The referee sees the clients only; messages are what the nodes have told.
    fn complete(&self, measured: &mut Measured) {
        let received: u64 = self.received.iter().sum();
        let most = self.received.iter().max().copied().unwrap_or(0);
        measured.messages = self.sent.iter().map(|(kind, count)| (kind.clone().into(), *count)).collect();
        measured.busiest = (received > 0).then(|| most as f64 / received as f64);
        measured.deliveries = received;
        measured.losses = self.lost;
    }
}
