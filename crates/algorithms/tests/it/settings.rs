//! An algorithm takes the settings that it names, and no others.

use std::time::Duration;

use vez_algorithms::{
    Algorithm, Setting, Setup,
    catalog::{self, Job},
    graph::Graph,
    quorum::Quorum,
    tree::Tree,
};

const ALL: [Setting; 10] = [
    Setting::Topology,
    Setting::Quorum,
    Setting::K,
    Setting::Groups,
    Setting::Replicas,
    Setting::Majority,
    Setting::Bits,
    Setting::Prefix,
    Setting::Patience,
    Setting::Period,
];

/// Seven nodes, of which there is a plane.
fn setup() -> Setup {
    Setup {
        tree: Tree::balanced(7, 2),
        graph: Graph::OfTree,
        places: (0..7).map(|i| [i * 9_000, i * 8_000]).collect(),
        quorum: Quorum::Grid,
        k: 2,
        groups: 3,
        replicas: 5,
        majority: 3,
        bits: 16,
        prefix: 2,
        retry: Duration::from_millis(50)..Duration::from_millis(150),
        patience: Duration::from_millis(250),
        period: Duration::from_millis(2500),
    }
}

/// The same but for one setting.
fn with(setting: Setting) -> Setup {
    let mut setup = setup();
    match setting {
        Setting::Topology => (setup.tree, setup.graph) = (Tree::line(7), Graph::Grid),
        Setting::Quorum => setup.quorum = Quorum::Star,
        Setting::K => setup.k += 1,
        Setting::Groups => setup.groups += 1,
        Setting::Replicas => setup.replicas -= 1,
        Setting::Majority => setup.majority += 1,
        Setting::Bits => setup.bits += 1,
        Setting::Prefix => setup.prefix += 1,
        Setting::Patience => setup.patience *= 2,
        Setting::Period => setup.period *= 2,
    }
    setup
}

/// All that an algorithm makes of a setup.
struct Made(Setup);

impl Job for Made {
    type Done = String;

    fn with<A: Algorithm>(self) -> String {
        let Self(setup) = self;
        format!("{:?} {:?} {}", A::system(&setup), A::wants(&setup), A::clients(&setup))
    }
}

#[test]
fn each_algorithm_takes_the_settings_that_it_names() {
    for entry in catalog::ALL {
        let made = |setup| catalog::visit(entry.name, Made(setup)).expect("it is in the catalog");
        let taken: Vec<Setting> = ALL.into_iter().filter(|setting| made(with(*setting)) != made(setup())).collect();
        let named: Vec<Setting> = ALL.into_iter().filter(|setting| entry.settings.contains(setting)).collect();
        assert_eq!(taken, named, "{}", entry.name);
    }
}
