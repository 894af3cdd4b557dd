//! Expectation maximisation: data and parameters in, better parameters out.
//!
//! | module | does |
//! |---|---|
//! | [`points`] | data in memory or in files larger than it |
//! | [`statistics`] | the sums over points that an M-step needs, and their merging |
//! | [`mod@e_step`] | a chunk of points to statistics, through the core's inference |
//! | [`factored`] | the same with latents taken as independent, the baseline of 000 |
//! | [`gp_select`] | learned selection: which latents the E-step looks at |
//! | [`mod@m_step`] | statistics to parameters |
//! | [`kinds`] | what is special to each kind of model |
//! | `schedule` | temperature, noise on the dictionary, points that are left out |
//! | `search` | which states are looked at while a dictionary takes shape |
//! | `stepwise`, `revive` | EM on batches, and new directions for latents that do nothing |
//! | [`mod@weak`] | what sources do while they are off, told from the noise of sensors |
//! | [`whiten`] | data to white data, and a model of these back to one of the raw data |
//! | [`settings`], [`init`] | what a run shall do, where it begins |
//! | [`mod@choose`] | which of several starts to keep |
//! | [`ending`] | which iterate of a start to keep, and when to stop |
//! | [`run`] | the loop: starts, iterations, history; its state is a checkpoint |
//!
//! One iteration costs, per point, one pass of D H multiply-adds (a matrix product over a chunk), the walk over its
//! states, and a scatter: H'^2 moments, and D numbers for every latent that has a mean.

pub mod choose;
pub mod e_step;
pub mod ending;
pub mod factored;
pub mod gp_select;
pub mod init;
pub mod kinds;
pub mod m_step;
pub mod points;
mod revive;
pub mod run;
mod schedule;
mod search;
pub mod settings;
pub mod statistics;
mod stepwise;
pub mod weak;
pub mod whiten;

pub use choose::{Prefer, choose};
pub use e_step::{Task, e_step};
pub use m_step::{Guard, Learned, Update, m_step};
pub use points::Points;
pub use run::{Next, State};
pub use settings::Settings;
pub use statistics::Statistics;
