//! The methods of a game that are those of the game inside it, for games of which one thing is broken, and the check that it is found.

use vecaz::contract::BrokenLaw;

/// The broken law that was found. Fails unless it is `law`, with `part` in what it says.
pub(crate) fn assert_broken(found: Result<(), Box<BrokenLaw>>, law: &str, part: &str) -> Box<BrokenLaw> {
    let broken = found.expect_err(part);
    assert_eq!(broken.law, law, "{broken}");
    assert!(broken.what.contains(part), "{part}: {broken}");
    broken
}

/// `Broken`, the game inside with one of the defects of the enum `Defect`, whose number is the constant.
macro_rules! broken_inside {
    ($inside:ty) => {
        #[derive(Clone)]
        struct Broken<const DEFECT: usize>($inside);

        impl<const DEFECT: usize> Broken<DEFECT> {
            fn has(&self, defect: Defect) -> bool {
                DEFECT == defect as usize
            }
        }
    };
}
pub(crate) use broken_inside;

/// The rules of a game `struct Name(Inside)`, as they are inside; sizes, symmetries and the look are left to it.
macro_rules! rules_as_inside {
    ($inside:ty) => {
        $crate::as_inside::play_as_inside!($inside);

        fn returns(&self, state: &Self::State, out: &mut [f32]) {
            self.0.returns(state, out);
        }
    };
}
pub(crate) use rules_as_inside;

/// The same without the returns.
macro_rules! play_as_inside {
    ($inside:ty) => {
        $crate::as_inside::unobserved_as_inside!($inside);

        fn observe(&self, state: &Self::State, player: u8, out: &mut [f32]) {
            self.0.observe(state, player, out);
        }
    };
}
pub(crate) use play_as_inside;

/// The same without the observation.
macro_rules! unobserved_as_inside {
    ($inside:ty) => {
        fn from_options(options: &toml::Table) -> vecaz::Result<Self> {
            <$inside>::from_options(options).map(Self)
        }

        fn options(&self) -> toml::Table {
            self.0.options()
        }

        fn aim(&self, player: u8) -> String {
            self.0.aim(player)
        }

        fn init(&self) -> Self::State {
            self.0.init()
        }

        fn is_valid(&self, state: &Self::State) -> bool {
            self.0.is_valid(state)
        }

        fn turn(&self, state: &Self::State) -> vecaz::game::Turn {
            self.0.turn(state)
        }

        fn legal(&self, state: &Self::State, history: vecaz::game::History<'_>, out: &mut [u16]) -> usize {
            self.0.legal(state, history, out)
        }

        fn step(&self, state: &mut Self::State, action: u16, history: vecaz::game::History<'_>) {
            self.0.step(state, action, history);
        }

        fn action_name(&self, state: &Self::State, action: u16) -> String {
            self.0.action_name(state, action)
        }
    };
}
pub(crate) use unobserved_as_inside;
