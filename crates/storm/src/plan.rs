//! What goes wrong in a storm, and when.

use std::fmt;

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use vez_peer::{
    charter::{Algorithms, Charter, LockAlgorithm},
    shard::Nanos,
};

use crate::clock::Clock;

pub(crate) const MILLISECOND: Nanos = 1_000_000;
pub(crate) const SECOND: Nanos = 1000 * MILLISECOND;

/// Everything that is decided before a storm.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub seed: u64,
    pub nodes: usize,
    pub charter: Charter,
    pub clocks: Vec<Clock>,
    /// The clocks of those who lock by SET: they are on no machine.
    pub keepers: Vec<Clock>,
    /// Whether clocks are more wrong than the charter allows: then leases promise nothing, and only fences do.
    pub wild: bool,
    pub faults: Vec<Fault>,
    /// When nothing goes wrong any more.
    pub calm: Nanos,
    /// When no client asks for anything new.
    pub quiet: Nanos,
    /// When everybody must have been served, and everything is tried out once more.
    pub probe: Nanos,
    /// When nobody looks any more who leads.
    pub dusk: Nanos,
    /// When all must be as if nothing had ever been.
    pub end: Nanos,
}

/// Something that goes wrong.
#[derive(Clone, PartialEq, Debug)]
pub struct Fault {
    /// When, in nanoseconds.
    pub at: Nanos,
    /// What.
    pub what: Mishap,
}

/// What can go wrong.
#[derive(Clone, PartialEq, Debug)]
pub enum Mishap {
    /// A process ends, and its machine starts another after a while.
    Crash {
        /// Where.
        machine: usize,
        /// After so long.
        down: Nanos,
        /// What it was writing is on its disk.
        written: bool,
        /// Its disk is empty afterwards.
        wiped: bool,
        /// The whole machine is started anew: its clock too, and its clients are gone.
        reboots: bool,
    },
    /// All processes end at once.
    Blackout {
        /// After so long they are back.
        down: Nanos,
    },
    /// A process sleeps: what comes for it waits, and time goes on.
    Pause {
        /// Where.
        machine: usize,
        /// How long.
        lasts: Nanos,
        /// It falls asleep between deciding something and doing it.
        midway: Option<Midway>,
    },
    /// Nothing gets through from some machines to others.
    Cut {
        /// From, to.
        links: Vec<(usize, usize)>,
        /// How long.
        lasts: Nanos,
    },
    /// More is lost, doubled and late than usually.
    Rough {
        /// How long.
        lasts: Nanos,
        /// How much is lost, in thousandths.
        loss: u32,
        /// How much is doubled, in thousandths.
        doubling: u32,
        /// How late it comes at most.
        delay: Nanos,
    },
    /// A disk takes long to write.
    SlowDisk {
        /// Where.
        machine: usize,
        /// How long that lasts.
        lasts: Nanos,
        /// How long it takes at most.
        latency: Nanos,
    },
    /// A disk fails, and the process ends.
    FailingDisk {
        /// Where.
        machine: usize,
        /// What it was to write is written all the same, but nothing that comes of it is done.
        written: bool,
    },
    /// A member leaves in good order, and comes back after a while.
    Leave {
        /// Which.
        machine: usize,
        /// After so long.
        away: Nanos,
    },
    /// Somebody wants a member to go.
    Evict {
        /// Which.
        machine: usize,
        /// Where that is said.
        by: usize,
    },
}

/// What a process has decided when it falls asleep.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Midway {
    /// Anything.
    Anything,
    /// To let somebody in.
    AGrant,
}

impl Plan {
    /// What the seed says.
    pub(crate) fn draw(seed: u64, nodes: usize, seconds: u64) -> Self {
        let mut chance = Chance::new(seed, 0);
        let lease = 3 * SECOND;
        let others = [
            LockAlgorithm::FilaForest,
            LockAlgorithm::NaimiTrehel,
            LockAlgorithm::Nxr,
            LockAlgorithm::Raymond,
            LockAlgorithm::SuzukiKasami,
        ];
        let algorithms = Algorithms(vec![(b"other/".to_vec(), others[chance.index(others.len())])]);
        let charter = Charter { lease, margin: lease / 50, rate_error: 100_000, algorithms, ..Charter::new(2) };
        let wild = chance.one_in(8);
        let most = if wild { 400_000 } else { i32::try_from(charter.rate_error).expect("small") };
        let mut clock = |machine: usize| Clock::draw(SECOND * (1 + 1000 * machine as u64), most, &mut chance);
        let clocks = (0..nodes).map(&mut clock).collect();
        let end = seconds * SECOND;
        let calm = end * 60 / 100;
        let mut plan = Self {
            seed,
            nodes,
            charter,
            clocks,
            keepers: Vec::new(),
            wild,
            faults: Vec::new(),
            calm,
            quiet: end * 70 / 100,
            probe: end * 84 / 100,
            dusk: end * 93 / 100,
            end,
        };
        plan.keepers = plan.draw_keepers(most);
        let longer = plan.waits_for_kept();
        (plan.probe, plan.dusk, plan.end) = (plan.probe + longer, plan.dusk + longer, plan.end + longer);
        plan.faults = plan.draw_faults(&mut chance);
        plan.faults.extend(plan.draw_evictions(&mut Chance::new(seed, 5)));
        plan.faults.sort_by_key(|fault| fault.at);
        plan
    }

    fn draw_faults(&self, chance: &mut Chance) -> Vec<Fault> {
        let first = (4 * SECOND).min(self.calm / 4);
        let span = self.calm - first;
        // Storms differ in kind: in some nothing but one kind of thing goes wrong, and often.
        let only = chance.one_in(3).then(|| chance.below(9));
        let count = 2 + chance.below(2 + 2 * self.calm / (3 * SECOND));
        let mut faults = Vec::new();
        for _ in 0..count {
            let kind = only.unwrap_or_else(|| chance.below(10));
            let at = first + chance.below(span);
            faults.push(Fault { at, what: self.draw_mishap(kind, self.calm - at, chance) });
            if chance.one_in(3) {
                faults.extend(self.draw_sequel(faults.last().expect("there is one"), chance));
            }
        }
        faults
    }

    /// In some storms members are told to go who may be quite well.
    fn draw_evictions(&self, chance: &mut Chance) -> Vec<Fault> {
        let count = if chance.one_in(4) { 1 + chance.below(4) } else { 0 };
        let eviction = |_| {
            let (machine, by) = (chance.index(self.nodes), chance.index(self.nodes));
            Fault { at: chance.below(self.calm), what: Mishap::Evict { machine, by } }
        };
        (0..count).map(eviction).collect()
    }

    /// Troubles do not come singly: who has just come back, or is about to wake up, is cut off.
    fn draw_sequel(&self, fault: &Fault, chance: &mut Chance) -> Option<Fault> {
        let (machine, over) = match fault.what {
            Mishap::Crash { machine, down, .. } => (machine, down),
            Mishap::Pause { machine, lasts, .. } => (machine, lasts),
            Mishap::Leave { machine, away } => (machine, away),
            Mishap::SlowDisk { machine, .. } | Mishap::FailingDisk { machine, .. } => (machine, 0),
            Mishap::Blackout { down } => (chance.index(self.nodes), down),
            Mishap::Cut { .. } | Mishap::Rough { .. } | Mishap::Evict { .. } => return None,
        };
        let at =
            (fault.at + over + chance.below(self.charter.lease)).saturating_sub(chance.below(self.charter.lease / 2));
        if at >= self.calm {
            return None;
        }
        let others = (0..self.nodes).filter(|other| *other != machine);
        let links = others.flat_map(|other| [(machine, other), (other, machine)]).collect();
        let lasts = (self.charter.lease + chance.below(self.charter.lease)).min(self.calm - at);
        Some(Fault { at, what: Mishap::Cut { links, lasts } })
    }

    fn draw_mishap(&self, kind: u64, left: Nanos, chance: &mut Chance) -> Mishap {
        let lease = self.charter.lease;
        let machine = chance.index(self.nodes);
        // Short against a lease, about as long, or longer.
        let lasts = |chance: &mut Chance| {
            let lasts = match chance.below(3) {
                0 => chance.below(lease / 3),
                1 => lease / 2 + chance.below(lease),
                _ => lease + chance.below(2 * lease),
            };
            lasts.min(left)
        };
        match kind {
            0 | 9 => Mishap::Crash {
                machine,
                down: if chance.one_in(2) { chance.below(20 * MILLISECOND) } else { lasts(chance) },
                written: chance.one_in(2),
                wiped: chance.one_in(8),
                reboots: chance.one_in(4),
            },
            1 => {
                let midway = match chance.below(4) {
                    0 => Some(Midway::Anything),
                    1 => Some(Midway::AGrant),
                    _ => None,
                };
                Mishap::Pause { machine, lasts: lasts(chance), midway }
            }
            2 => Mishap::Cut { links: self.draw_cut(chance), lasts: lasts(chance) },
            3 => Mishap::Rough {
                lasts: lasts(chance),
                loss: chance.below(500) as u32,
                doubling: chance.below(300) as u32,
                delay: chance.below(2 * SECOND),
            },
            4 => Mishap::SlowDisk { machine, lasts: lasts(chance), latency: chance.below(2 * SECOND) },
            5 => Mishap::FailingDisk { machine, written: chance.one_in(2) },
            6 => Mishap::Leave { machine, away: lasts(chance) },
            7 => Mishap::Blackout { down: lasts(chance) },
            _ => Mishap::Cut { links: self.draw_cut(chance), lasts: (2 * lease + chance.below(2 * lease)).min(left) },
        }
    }

    /// Some machines from the others, one way or both; or two from each other, whom all others still reach.
    fn draw_cut(&self, chance: &mut Chance) -> Vec<(usize, usize)> {
        let side: Vec<bool> = (0..self.nodes).map(|_| chance.one_in(2)).collect();
        let (one, other) = (chance.index(self.nodes), chance.index(self.nodes));
        let pairs = (0..self.nodes).flat_map(|from| (0..self.nodes).map(move |to| (from, to)));
        let pairs = pairs.filter(|(from, to)| from != to);
        match chance.below(5) {
            0 => pairs.filter(|(from, to)| side[*from] != side[*to]).collect(),
            1 => pairs.filter(|(from, to)| side[*from] && !side[*to]).collect(),
            2 => pairs.filter(|pair| *pair == (one, other) || *pair == (other, one)).collect(),
            3 => pairs.filter(|(from, _)| *from == one).collect(),
            _ => pairs.filter(|(from, to)| *from == one || *to == one).collect(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>7} s  ", Seconds(self.at))?;
        match &self.what {
            Mishap::Crash { machine, down, written, wiped, reboots } => {
                let writes = if *written { "after" } else { "before" };
                let wiped = if *wiped { ", with an empty disk" } else { "" };
                let reboots = if *reboots { ", the whole machine" } else { "" };
                write!(
                    f,
                    "m{machine} crashes {writes} what it writes is written{reboots}, back after {} s{wiped}",
                    Seconds(*down)
                )
            }
            Mishap::Blackout { down } => write!(f, "all crash, back after {} s", Seconds(*down)),
            Mishap::Pause { machine, lasts, midway } => {
                let midway = match midway {
                    Some(Midway::Anything) => ", between deciding something and doing it",
                    Some(Midway::AGrant) => ", between deciding to let somebody in and doing it",
                    None => "",
                };
                write!(f, "m{machine} sleeps for {} s{midway}", Seconds(*lasts))
            }
            Mishap::Cut { links, lasts } => {
                write!(f, "for {} s nothing gets through", Seconds(*lasts))?;
                links.iter().try_for_each(|(from, to)| write!(f, " m{from}→m{to}"))
            }
            Mishap::Rough { lasts, loss, doubling, delay } => write!(
                f,
                "for {} s {loss} ‰ are lost, {doubling} ‰ doubled, delays of up to {} s",
                Seconds(*lasts),
                Seconds(*delay)
            ),
            Mishap::SlowDisk { machine, lasts, latency } => {
                write!(f, "for {} s the disk of m{machine} takes up to {} s", Seconds(*lasts), Seconds(*latency))
            }
            Mishap::FailingDisk { machine, written } => {
                let written = if *written { "after" } else { "at" };
                write!(f, "the disk of m{machine} fails {written} its next write")
            }
            Mishap::Leave { machine, away } => write!(f, "m{machine} leaves, back after {} s", Seconds(*away)),
            Mishap::Evict { machine, by } => write!(f, "m{by} is told that m{machine} is to go"),
        }
    }
}

/// Nanoseconds as seconds.
pub(crate) struct Seconds(pub Nanos);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{}.{:03}", self.0 / SECOND, self.0 % SECOND / MILLISECOND))
    }
}

/// A stream of chances. Each purpose has one of its own, so that one more drawn for one moves nothing else.
pub(crate) struct Chance(ChaCha8Rng);

impl Chance {
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&purpose.to_le_bytes());
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A number below n, or 0.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        let wide = u128::from(self.0.next_u64()) * u128::from(n);
        (wide >> 64) as u64
    }

    pub(crate) fn index(&mut self, n: usize) -> usize {
        usize::try_from(self.below(n as u64)).expect("below a usize")
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}
