//! Short pages, each for one question. The first three are enough for a first day.
//!
//! | page | for |
//! |---|---|
//! | [`choosing_a_model`] | everybody |
//! | [`choosing_sizes`] | who must fit it into a device |
//! | [`wav_to_firmware`] | sound |
//! | [`sensors`] | arrays, tables, electrodes |
//! | [`reading_the_report`] | who has trained a model |
//! | [`numbers_and_bits`] | integers, fixed point, bits that are equal everywhere |
//! | [`many_machines`] | who trains on a cluster, or on files larger than memory |
//! | [`adding_a_kind`] | who changes this code |

#[doc = include_str!("choosing-a-model.md")]
pub mod choosing_a_model {}

#[doc = include_str!("choosing-sizes.md")]
pub mod choosing_sizes {}

#[doc = include_str!("wav-to-firmware.md")]
pub mod wav_to_firmware {}

#[doc = include_str!("sensors.md")]
pub mod sensors {}

#[doc = include_str!("reading-the-report.md")]
pub mod reading_the_report {}

#[doc = include_str!("numbers-and-bits.md")]
pub mod numbers_and_bits {}

#[doc = include_str!("many-machines.md")]
pub mod many_machines {}

#[doc = include_str!("adding-a-kind.md")]
pub mod adding_a_kind {}
