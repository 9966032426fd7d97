use std::time::{Duration, Instant};
use vez_algorithms::{catalog::Job, mutex::Mutex, *};
use vez_lab::{check::*, system::*};
static mut X: u8 = 0;
fn watch() -> Duration {
    static S: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    S.get_or_init(Instant::now).elapsed()
}
struct C {
    sys: System,
    cfg: Config,
}
impl Job for C {
    type Done = ();
    fn mutex<A: Mutex>(self) {
        let t = Instant::now();
        let setup = self.sys.setup(1, 0).unwrap();
        match check::<A>(&setup, &self.cfg, watch, &mut |_| {}) {
            Err(e) => println!("{} {e}", A::NAME),
            Ok(r) => {
                print!(
                    "{:18} n={} {:?} {:?} states={} trans={} depth={} b/s={:.1} {:.0}/s all={:?} ",
                    A::NAME,
                    self.sys.nodes,
                    self.cfg.workload,
                    self.cfg.order,
                    r.states,
                    r.transitions,
                    r.depth,
                    r.bytes_per_state,
                    r.states as f64 / r.elapsed.as_secs_f64(),
                    t.elapsed()
                );
                match r.verdict {
                    Verdict::Holds(w) => println!("{w:?}"),
                    Verdict::Violated(c) => println!("VIOLATED {} in {}\n{}", c.breach, c.steps, c.transcript),
                }
            }
        }
    }
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let names: Vec<&str> = if a[1] == "all" { catalog::ALL.iter().map(|e| e.name).collect() } else { vec![&a[1]] };
    for name in names {
        for order in [Order::Fifo, Order::Any] {
            let model = catalog::ALL.iter().find(|e| e.name == name).unwrap().assumptions;
            if a[1] == "all" && order == Order::Any && model.order == Order::Fifo {
                continue;
            }
            let workload = if a[3] == "u" { Workload::Unbounded } else { Workload::Requests(a[3].parse().unwrap()) };
            catalog::visit(
                name,
                C {
                    sys: System {
                        nodes: a[2].parse().unwrap(),
                        topology: Topology::Tree(2),
                        quorum: Quorum::Grid,
                        retry: Duration::from_millis(1)..Duration::from_millis(2),
                    },
                    cfg: Config { workload, order, crashes: 0, exact: false, max_states: 30_000_000 },
                },
            );
        }
    }
}
