//! What blobs of streams may say, and which streams there cannot be.

mod common;

use common::streams::{blob_of, dealt, frame, parameters, parse, stream};
use spikelet::blob::{BlobError, crc32};
use spikelet::frame::{Form, Frame};
use spikelet::{Blob, Engine, Error, ModelError, Stream};
use spikelet_trainer::blob::{self, About};
use spikelet_trainer::groups::Grouping;
use spikelet_trainer::parameters::ModelKind;
use spikelet_trainer::prepare::Prepared;

/// The bytes of a model of 16 bins and two channels, with gains and groups.
fn bytes() -> Vec<u8> {
    let (parameters, grouping) = (parameters(ModelKind::Gsc, 2, 5), dealt(5, 3));
    let form = Form::Transform { bins: 16, channels: 2 };
    let about = About { frame: frame(form), gains: &[0.5; 16], groups: Some(&grouping), provenance: "here" };
    let prepared = Prepared::<f32>::new(&parameters, &common::exact(5)).unwrap();
    blob::write(&prepared, &parameters.slab_cov, about).unwrap()
}

/// Where the entry of a section is in the table, and where its content.
fn section(bytes: &[u8], tag: &[u8]) -> (usize, usize) {
    let entry = (48..).step_by(16).find(|&at| bytes[at..].starts_with(tag)).unwrap();
    (entry, u32::from_le_bytes(bytes[entry + 4..entry + 8].try_into().unwrap()) as usize)
}

/// What the reader says when some bytes are others, and the checksum is right.
fn with(at: usize, change: &[u8]) -> Result<Blob<'static>, BlobError> {
    let mut bytes = bytes();
    bytes[at..at + change.len()].copy_from_slice(change);
    let crc = crc32(&bytes[16..]).to_le_bytes();
    bytes[12..16].copy_from_slice(&crc);
    parse(&bytes)
}

#[test]
fn blobs_carry_gains_and_groups() {
    let blob = parse(&bytes()).unwrap();
    assert_eq!(blob.frame(), frame(Form::Transform { bins: 16, channels: 2 }));
    assert_eq!((blob.gains(), blob.provenance()), (&[0.5; 16][..], "here"));
    assert_eq!(Grouping::of(&blob.groups(), 5), Some(dealt(5, 3)));

    // Where a blob says nothing.
    let of = |form: Option<Frame>, dims| {
        let about = About { frame: form, ..About::default() };
        blob_of(&parameters(ModelKind::Gsc, dims, 3), about).groups().len()
    };
    assert_eq!((of(None, 2), of(frame(Form::Samples), 2)), (3, 3));
    assert_eq!(of(frame(Form::Transform { bins: 64, channels: 2 }), 2), 3);
    assert_eq!(of(frame(Form::Windows { length: 4, hop: 2 }), 4), 1);
    assert_eq!(of(frame(Form::Patches { width: 2, height: 2, colours: 1 }), 4), 1);
}

#[test]
fn hostile_sections_are_refused() {
    let bytes = bytes();
    let ((gain, gains), (groups, numbers)) = (section(&bytes, b"gain"), section(&bytes, b"grps"));
    let model = |error| BlobError::Model(error);
    assert!(with(gains, &2.0f32.to_le_bytes()).is_ok());
    for (value, error) in [
        (0.0, ModelError::Range { field: "gain", index: 1 }),
        (-1.0, ModelError::Range { field: "gain", index: 1 }),
        (f32::NAN, ModelError::NotFinite { field: "gain", index: 1 }),
        (f32::INFINITY, ModelError::NotFinite { field: "gain", index: 1 }),
    ] {
        assert_eq!(with(gains + 4, &value.to_le_bytes()).unwrap_err(), model(error));
    }
    let length = ModelError::Length { field: "gain", expected: 16, found: 15 };
    assert_eq!(with(gain + 8, &60u32.to_le_bytes()).unwrap_err(), model(length));
    assert_eq!(with(gain + 8, &63u32.to_le_bytes()).unwrap_err(), BlobError::SectionLength { tag: *b"gain" });
    // Gains without a transform.
    let (entry, content) = section(&bytes, b"fram");
    assert_eq!(with(content, &[0; 16]).unwrap_err(), model(ModelError::Unfit { field: "gain" }));
    assert_eq!(with(entry, b"xxxx").unwrap_err(), model(ModelError::Unfit { field: "gain" }));
    // Without the section all gains are 1.
    assert!(with(gain, b"xxxx").unwrap().gains().is_empty());

    let damaged = BlobError::Section { tag: *b"grps" };
    assert_eq!(with(groups + 8, &9u32.to_le_bytes()).unwrap_err(), damaged);
    assert_eq!(with(numbers + 10, &[1]).unwrap_err(), damaged);
    let number = model(ModelError::Range { field: "groups", index: 0 });
    assert_eq!(with(numbers, &[3]).unwrap_err(), number);
    let name = |index| model(ModelError::Range { field: "group names", index });
    assert_eq!(with(numbers + 12, b"\n").unwrap_err(), name(0));
    assert_eq!(with(numbers + 12, b"source 1").unwrap_err(), name(1));
    assert_eq!(with(groups, b"xxxx").unwrap().groups().len(), 5);
    for len in 0..bytes.len() {
        assert!(parse(&bytes[..len]).is_err());
    }
}

#[test]
fn some_streams_cannot_be() {
    let setting = |blob| match stream(blob, Engine::of_kind(blob.kind())) {
        Err(Error::Setting { field }) => Some(field),
        _ => None,
    };
    let of = |kind, dims, frame: Frame, groups: usize| {
        let grouping = (groups > 0).then(|| dealt(4, groups));
        let about = About { frame: Some(frame), groups: grouping.as_ref(), ..About::default() };
        blob_of(&parameters(kind, dims, 4), about)
    };
    let plain = |form| frame(form).unwrap();
    let patches = of(ModelKind::Gsc, 4, plain(Form::Patches { width: 2, height: 2, colours: 1 }), 0);
    assert_eq!((setting(patches), Stream::memory_len(&patches)), (Some("a stream of patches"), 0));
    let several = Some("more than one group of maximal causes");
    assert_eq!(setting(of(ModelKind::Mca, 4, plain(Form::Windows { length: 4, hop: 2 }), 2)), several);
    assert_eq!(setting(of(ModelKind::Mca, 2, plain(Form::Samples), 0)), several);
    assert_eq!(setting(of(ModelKind::Mca, 2, plain(Form::Samples), 1)), None);
    let centred = Frame { centred: true, ..plain(Form::Samples) };
    assert_eq!(setting(of(ModelKind::Gsc, 2, centred, 0)), Some("taking the mean off single samples"));

    let blob = of(ModelKind::Gsc, 2, plain(Form::Transform { bins: 16, channels: 2 }), 0);
    let needed = Stream::memory_len(&blob);
    for found in [0, 10, needed - 1] {
        let error = Stream::new(blob, Engine::Truncated, &mut vec![0.0; found]).unwrap_err();
        assert_eq!(error, Error::Memory { needed, found });
    }
    assert!(Stream::new(blob, Engine::Truncated, &mut vec![0.0; needed]).is_ok());
    // An engine that the kind does not have.
    let ssmca = of(ModelKind::Ssmca, 2, plain(Form::Samples), 1);
    let error = Stream::new(ssmca, Engine::Truncated, &mut vec![0.0; 10_000]).unwrap_err();
    assert_eq!(error, Error::Setting { field: "engine" });
}
