//! scratch
fn main() {
    let args: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let storm = vez_storm::Storm { nodes: 5, seeds: args[1], first_seed: args[0], seconds: 60 };
    if args.len() > 2 {
        let r = vez_storm::tell(&storm, args[0], &mut |l| eprintln!("{l}"));
        eprintln!("{r:?}");
        return;
    }
    let t = std::time::Instant::now();
    let (tally, broken) = vez_storm::run(&storm, &|| {});
    println!("{tally:?} {:?}", t.elapsed());
    for b in &broken {
        println!("{b}");
    }
    println!("{} broken", broken.len());
}
