//! The border against files: good ones give the right numbers, bad ones an error that names what and where, and no bytes
//! at all make the readers panic or allocate what a header claims.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use spikelet_trainer::data::*;
use spikelet_trainer::{Error, Result};
use tempfile::{TempDir, tempdir};

/// A folder and a file in it with this content.
fn file(name: &str, bytes: impl AsRef<[u8]>) -> (TempDir, PathBuf) {
    let folder = tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn read(name: &str, bytes: impl AsRef<[u8]>) -> Result<Points> {
    let (_folder, path) = file(name, bytes);
    Points::read(path)
}

/// The error for a file, after the checks that hold for all: bad input, three parts, the file named.
fn refused(name: &str, bytes: impl AsRef<[u8]>) -> String {
    let error = read(name, bytes).unwrap_err();
    check(&error, name)
}

fn check(error: &Error, name: &str) -> String {
    let text = error.to_string();
    assert_eq!(error.exit_code(), 2, "{text}");
    assert!(text.contains(name) && text.matches(": ").count() == 2, "{text}");
    text
}

/// An array file as NumPy writes it, with any header.
fn npy(dictionary: &str, numbers: &[u8]) -> Vec<u8> {
    let len = u16::try_from(dictionary.len()).unwrap();
    [b"\x93NUMPY\x01\x00", &len.to_le_bytes()[..], dictionary.as_bytes(), numbers].concat()
}

fn header(descr: &str, fortran_order: &str, shape: &str) -> String {
    format!("{{'descr': '{descr}', 'fortran_order': {fortran_order}, 'shape': {shape}, }}\n")
}

fn bytes_of<const N: usize>(values: impl IntoIterator<Item = [u8; N]>) -> Vec<u8> {
    values.into_iter().flatten().collect()
}

fn chunk(id: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let padding = &[0][..body.len() % 2];
    [id, &(body.len() as u32).to_le_bytes()[..], body, padding].concat()
}

fn format_chunk(coding: u16, channels: u16, bits: u16) -> Vec<u8> {
    let frame = channels * (bits / 8);
    let words = [coding, channels, 8000, 0, 0, 0, frame, bits];
    chunk(b"fmt ", &bytes_of(words.map(u16::to_le_bytes)))
}

fn wav(chunks: &[Vec<u8>]) -> Vec<u8> {
    let body = chunks.concat();
    [b"RIFF", &(body.len() as u32 + 4).to_le_bytes()[..], b"WAVE", &body].concat()
}

#[test]
fn array_number_formats() {
    let cases: [(&str, Vec<u8>); 14] = [
        ("|b1", vec![1, 0]),
        ("|i1", vec![1, 0]),
        ("<i2", bytes_of([1i16, 0].map(i16::to_le_bytes))),
        (">i2", bytes_of([1i16, 0].map(i16::to_be_bytes))),
        ("<i4", bytes_of([1i32, 0].map(i32::to_le_bytes))),
        ("<i8", bytes_of([1i64, 0].map(i64::to_le_bytes))),
        ("|u1", vec![1, 0]),
        ("<u2", bytes_of([1u16, 0].map(u16::to_le_bytes))),
        (">u4", bytes_of([1u32, 0].map(u32::to_be_bytes))),
        ("<u8", bytes_of([1u64, 0].map(u64::to_le_bytes))),
        ("<f2", vec![0, 0x3c, 0, 0]),
        ("<f4", bytes_of([1f32, 0.0].map(f32::to_le_bytes))),
        (">f4", bytes_of([1f32, 0.0].map(f32::to_be_bytes))),
        (">f8", bytes_of([1f64, 0.0].map(f64::to_be_bytes))),
    ];
    for (descr, numbers) in cases {
        let points = read("a.npy", npy(&header(descr, "False", "(2,)"), &numbers)).unwrap();
        assert_eq!((points.values, points.points, points.dims), (vec![1.0, 0.0], 2, 1), "{descr}");
    }
}

#[test]
fn array_orders_and_versions() {
    let numbers = [1, 2, 3, 4, 5, 6];
    let points = read("a.npy", npy(&header("|u1", "False", "(3, 2)"), &numbers)).unwrap();
    assert_eq!(points.values, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    // Column after column: 1 2 3 is the first dimension.
    let bytes = npy(&header("|u1", "True", "(3, 2)"), &numbers);
    assert_eq!(read("a.NPY", &bytes).unwrap().values, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let (_folder, path) = file("a.npy", &bytes);
    assert_eq!(read_array(&path).unwrap().values, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let mut source = Source::open(&path).unwrap();
    let mut rows = vec![9.0];
    assert_eq!(source.read_chunk(1, 1, &mut rows).unwrap(), 1);
    assert_eq!(rows, [2.0, 5.0]);
    assert_eq!(source.read_chunk(3, 1, &mut rows).unwrap(), 0);
    assert!(rows.is_empty());

    let text = header("|u1", "False", "(1, 6)");
    let start = [b"\x93NUMPY\x02\x00", &(text.len() as u32).to_le_bytes()[..]].concat();
    let points = read("a.npy", [&start, text.as_bytes(), &numbers, b"more"].concat()).unwrap();
    assert_eq!((points.points, points.dims), (1, 6));
}

#[test]
fn arrays_that_are_not_points() {
    let array = |descr, shape| npy(&header(descr, "False", shape), &[0; 64]);
    for (bytes, what) in [
        (array("<f8", "()"), "the array is a single number"),
        (array("<f8", "(1, 2, 1)"), "the array has 3 axes instead of 1 or 2"),
        (array("<f8", "(0, 2)"), "the array holds no points"),
        (array("<f8", "(4, 0)"), "the points have no dimensions"),
        (array("<c8", "(2,)"), "the array holds complex numbers ('<c8')"),
        (array("|O", "(2,)"), "the array holds Python objects ('|O')"),
        (array("<U3", "(2,)"), "the array holds text ('<U3')"),
        (array("<M8[us]", "(2,)"), "the array holds dates or times"),
        (array("<f16", "(2,)"), "the array holds floats of an unusual width ('<f16')"),
        (
            npy("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,), }", &[0; 4]),
            "the array holds records",
        ),
        (npy("{'descr': '<f4'", &[]), "the header of the array file is damaged"),
        (b"\x93NUMPY\x09\x00\x00\x00".to_vec(), "version 9 of NumPy array files is not known"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(), "the header of the array file is too long"),
        (b"\x93NUMPY\x01\x00\xff\x00{".to_vec(), "the array file ends within its header"),
        (b"PK\x03\x04 an .npz file".to_vec(), "this is not a NumPy array file"),
        (b"\x93NUM".to_vec(), "the array file ends within its header"),
        (vec![], "the file is empty"),
    ] {
        let text = refused("a.npy", bytes);
        assert!(text.starts_with(what), "{text}");
    }
}

#[test]
fn an_array_header_that_lies_about_the_size_costs_nothing() {
    for shape in [
        "(9,)",
        "(1000000000000,)",
        "(4294967296, 4294967296)",
        "(9223372036854775807, 2)",
        "(18446744073709551615, 18446744073709551615, 0)",
    ] {
        refused("a.npy", npy(&header("<f8", "True", shape), &[0; 64]));
        let (_folder, path) = file("a.npy", npy(&header("<f8", "True", shape), &[0; 64]));
        check(&read_array(path).unwrap_err(), "a.npy");
    }
    let text = refused("a.npy", npy(&header("<f8", "False", "(9,)"), &[0; 64]));
    assert!(text.contains("shape (9,) but the file holds 64 bytes"), "{text}");
}

#[test]
fn parameters() {
    let (_folder, path) = file("pi.npy", npy(&header("<f8", "False", "()"), &0.25f64.to_le_bytes()));
    assert_eq!(read_array(&path).unwrap(), Array { shape: vec![], values: vec![0.25] });
    let (_folder, path) = file("mu.npy", npy(&header("|u1", "True", "(0, 3)"), &[]));
    assert_eq!(read_array(&path).unwrap(), Array { shape: vec![0, 3], values: vec![] });
    let numbers = bytes_of([1.0, 2.0, 3.0, f64::NAN].map(f64::to_le_bytes));
    for (shape, place) in [("(4,)", "w.npy, entry 3"), ("(2, 2)", "w.npy, row 1, column 1")] {
        let (_folder, path) = file("w.npy", npy(&header("<f8", "False", shape), &numbers));
        let text = check(&read_array(&path).unwrap_err(), "w.npy");
        assert!(text.contains(place), "{text}");
    }
    let (_folder, path) = file("w.npy", npy(&header("<f8", "False", "(1, 1, 1)"), &[0; 8]));
    assert!(read_array(&path).unwrap_err().to_string().contains("3 axes instead of 0 to 2"));
}

#[test]
fn not_finite_is_refused_with_its_place() {
    let numbers = bytes_of([1.0, 2.0, 3.0, f32::INFINITY].map(f32::to_le_bytes));
    let array = refused("a.npy", npy(&header("<f4", "False", "(2, 2)"), &numbers));
    let sound = refused("a.wav", wav(&[format_chunk(3, 2, 32), chunk(b"data", &numbers)]));
    for (text, place) in
        [(array, "point 1, dimension 1 (counted from 0)"), (sound, "sample 1 (counted from 0), channel 2")]
    {
        assert!(text.starts_with("inf is not a finite number") && text.contains(place), "{text}");
    }
    let text = refused("a.csv", "1,2\n3,nan\n");
    assert!(text.starts_with("NaN is not a finite number") && text.contains("line 2, column 2"), "{text}");
}

#[test]
fn tables() {
    for text in [
        "1,2\n3,4.5",
        "1,2\r\n3,4.5\r\n",
        "a,b\n\n1,2\n\n3,4.5\n\n",
        "\u{feff}1;2\n3;4.5\n",
        "\u{feff}left;right\n1;2\n3;4.5\n",
        "1\t2\n3\t4.5\n",
        "\"a, or b\",\"c\"\n\"1\", 2\n +3e0 ,45e-1\n",
        "# x,y\n1,2\n3,4.5\n",
        "# made by hand; twice\n1,2\n# not 5,6\n3,4.5\n",
        "1 2\n3 4.5\n",
        "left right\n  1.0e+00  2\n3 4.5\n",
        "50Hz,2024-01-31\n1,2\n3,4.5\n",
    ] {
        let points = read("a.csv", text).unwrap();
        assert_eq!((points.points, points.dims), (2, 2), "{text:?}");
        assert_eq!(points.values, [1.0, 2.0, 3.0, 4.5], "{text:?}");
    }
    assert_eq!(read("a.csv", "1\n2\n3\n").unwrap().dims, 1);
}

#[test]
fn tables_with_slips() {
    for (bytes, what, place) in [
        (&b"1,2\n3\n"[..], "the row has one cell instead of 2", "line 2:"),
        (b"a,b\n1,2\n\n3,4,5\n", "the row has 3 cells instead of 2", "line 4:"),
        (b"\xef\xbb\xbfa,b\r\n\r\n1,2\r\n3,x", "'x' is not a number", "line 4, column 2:"),
        (b"\"a\nb\",c\n1,2\n3,x", "'x' is not a number", "line 4, column 2:"),
        (b"a,b,c\n1,2\n", "the row has 2 cells instead of 3", "line 2:"),
        (b"1,2\n3,x\n", "'x' is not a number", "line 2, column 2:"),
        (b"1,2x\n3,4\n", "'2x' is not a number", "line 1, column 2:"),
        (b"1,5;2,5\n3;4\n", "'1,5' is not a number", "line 1, column 1:"),
        (b"1 2\n3 x\n", "'x' is not a number", "line 2, column 2:"),
        (b"a b\nc d\n1 2\n", "'c d' is not a number", "line 2, column 1:"),
        (b"# a\n1,2\n# b\n\n# c\n3,x\n", "'x' is not a number", "line 6, column 2:"),
        (b"1,2,\n", "the cell is empty", "line 1, column 3:"),
        (b"a,b\n1,\xff\xfe\n", "'\u{fffd}\u{fffd}' is not a number", "line 2, column 2:"),
        (b"a\n01234567890123456789tail is long\n", "'01234567890123456789...' is not a number", "line 2,"),
        (b"a,b\n", "the table holds no rows of numbers", "a.csv:"),
        (b"\n\n\n", "the table holds no rows of numbers", "a.csv:"),
        (b"\xff\xfe1\x00", "the table is UTF-16 text", "a.csv:"),
        (b"", "the file is empty", "a.csv:"),
    ] {
        let text = refused("a.csv", bytes);
        assert!(text.starts_with(what) && text.contains(place), "{text}");
    }
}

#[test]
fn recordings_of_every_width() {
    let data = |bytes: &[u8]| chunk(b"data", bytes);
    for (coding, bits, bytes) in [
        (1, 8, vec![0, 192]),
        (1, 16, vec![0, 0x80, 0, 0x40]),
        (1, 24, vec![0, 0, 0x80, 0, 0, 0x40]),
        (1, 32, vec![0, 0, 0, 0x80, 0, 0, 0, 0x40]),
        (3, 32, bytes_of([-1f32, 0.5].map(f32::to_le_bytes))),
        (3, 64, bytes_of([-1f64, 0.5].map(f64::to_le_bytes))),
    ] {
        let points = read("a.wav", wav(&[format_chunk(coding, 1, bits), data(&bytes)])).unwrap();
        assert_eq!(
            (points.values, points.dims, points.rate),
            (vec![-1.0, 0.5], 1, Some(8000)),
            "{bits} bits"
        );
    }
    // A chunk of odd length is padded; one after the samples is of no interest.
    let other = chunk(b"LIST", b"odd");
    let points =
        read("a.WAV", wav(&[other.clone(), format_chunk(1, 2, 8), other.clone(), data(&[128; 6]), other]));
    assert_eq!(points.unwrap().points, 3);
}

#[test]
fn recordings_agree_with_hound() {
    for (bits, channels) in [(8, 1), (16, 2), (24, 3), (32, 1)] {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a.wav");
        let sample_format = hound::SampleFormat::Int;
        let spec = hound::WavSpec { channels, sample_rate: 44_100, bits_per_sample: bits, sample_format };
        let mut writer = hound::WavWriter::create(&path, spec).unwrap();
        let samples: Vec<i32> = (0..30).map(|i| (i - 15) << (bits - 5)).collect();
        samples.iter().for_each(|&sample| writer.write_sample(sample).unwrap());
        writer.finalize().unwrap();
        let points = Points::read(&path).unwrap();
        assert_eq!((points.dims, points.rate), (usize::from(channels), Some(44_100)));
        let expected: Vec<_> =
            samples.iter().map(|&x| f64::from(x) / 2f64.powi(i32::from(bits) - 1)).collect();
        assert_eq!(points.values, expected, "{bits} bits");
    }
}

#[test]
fn recordings_with_slips() {
    let format = || format_chunk(1, 2, 16);
    let data = chunk(b"data", &[0; 8]);
    let mut promise = data.clone();
    promise[4..8].copy_from_slice(&0xfffffff0u32.to_le_bytes());
    // A length that nobody knew when the header was written.
    let mut piped = data.clone();
    for unknown in [0xffff_ffffu32, 0x8000_0000] {
        piped[4..8].copy_from_slice(&unknown.to_le_bytes());
        assert_eq!(read("a.wav", wav(&[format(), piped.clone()])).unwrap().points, 2);
    }
    let mut wrong_frame = format();
    wrong_frame[20] = 3;
    for (bytes, what) in [
        (wav(&[format(), promise]), "the header promises 4294967280 bytes of samples but the file holds 8"),
        (wav(&[format(), chunk(b"data", &[0; 6])]), "the recording ends within a sample"),
        (wav(&[format(), chunk(b"data", &[])]), "the recording holds no samples"),
        (wav(&[format()]), "the recording ends within its header"),
        (wav(std::slice::from_ref(&data)), "the recording does not say its format"),
        (wav(&[format_chunk(1, 0, 16), data.clone()]), "the recording has no channels"),
        (wav(&[format_chunk(1, 1, 12), data.clone()]), "12-bit integer samples are not supported"),
        (wav(&[format_chunk(0x55, 2, 16), data.clone()]), "the samples are compressed (coding 0x0055)"),
        (wav(&[wrong_frame, data.clone()]), "2 channels of 16 bits do not take 3 bytes"),
        (wav(&[chunk(b"fmt ", &[1]), data.clone()]), "the format of the recording is damaged"),
        (b"RIFX\0\0\0\0WAVE".to_vec(), "this is RIFX, which is big-endian, not WAV"),
        (b"fLaC\0\0\0\x22abcdefgh".to_vec(), "this is FLAC, not WAV"),
        (b"RIFF\0\0\0\0AVI ".to_vec(), "this is not a WAV file"),
        (b"RIFF".to_vec(), "the recording ends within its header"),
        (vec![], "the file is empty"),
    ] {
        let text = refused("a.wav", bytes);
        assert!(text.starts_with(what), "{text}");
    }
}

#[test]
fn paths_that_are_no_files() {
    let folder = tempdir().unwrap();
    for name in ["a.npy", "a.csv", "a.wav", "a.txt", "a"] {
        let path = folder.path().join(name);
        let text = check(&Source::open(&path).unwrap_err(), name);
        assert!(text.starts_with("there is no such file"), "{text}");
        fs::create_dir(&path).unwrap();
        let text = check(&Source::open(&path).unwrap_err(), name);
        assert!(text.starts_with("this is a folder"), "{text}");
    }
    let text = refused("a.txt", "1");
    assert!(text.contains(".npy, .npz, .csv, .wav"), "{text}");
}

#[test]
fn a_file_cut_anywhere_never_reads_as_whole() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("whole.npy");
    write_npy_f32(&path, &[4, 2], &[1.0; 8]).unwrap();
    let array = fs::read(&path).unwrap();
    let sound = wav(&[format_chunk(1, 2, 16), chunk(b"LIST", b"abc"), chunk(b"data", &[7; 16])]);
    for (name, bytes) in [("a.npy", array), ("a.wav", sound)] {
        assert_eq!(read(name, &bytes).unwrap().points, 4);
        for len in 0..bytes.len() {
            refused(name, &bytes[..len]);
        }
    }
    // A table cut within its last number is a table.
    let table = "a,b\n1.5,2.5\n3,4\n";
    for len in 0..table.len() {
        let _ = read("a.csv", &table[..len]);
    }
}

#[test]
fn arrays_round_trip() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a.npy");
    write_npy_f64(&path, &[2], &[f64::MIN_POSITIVE, -1.0 / 3.0]).unwrap();
    assert_eq!(read_array(&path).unwrap().values, [f64::MIN_POSITIVE, -1.0 / 3.0]);
    write_npy_i64(&path, &[1, 2], &[-7, 1 << 53]).unwrap();
    let back = read_array(&path).unwrap();
    assert_eq!((back.shape, back.values), (vec![1, 2], vec![-7.0, 9_007_199_254_740_992.0]));
}

proptest! {
    #[test]
    fn random_bytes_never_panic(
        name in prop::sample::select(&["a.npy", "a.csv", "a.wav"][..]),
        bytes in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let _ = read(name, &bytes);
    }

    /// Most random bytes fail at the first one, so damage good files too.
    #[test]
    fn damaged_files_never_panic(which in 0..3usize, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let sound = wav(&[format_chunk(3, 2, 32), chunk(b"LIST", b"abc"), chunk(b"data", &[0; 16])]);
        let array = npy(&header("<f4", "True", "(3, 2)"), &[0; 24]);
        let (name, mut bytes) = [("a.npy", array), ("a.wav", sound), ("a.csv", b"a;b\n1;2\n\"3\";4\n".to_vec())][which].clone();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        let (_folder, path) = file(name, bytes);
        let _ = Points::read(&path);
        let _ = read_array(&path);
    }

    /// Beyond one block of the reader, so that blocks meet within a point.
    #[test]
    fn chunks_are_cuts_of_the_whole(
        dims in 1..5usize,
        points in 1..9000usize,
        size in 1..9000usize,
        fortran_order in any::<bool>(),
    ) {
        let order = if fortran_order { "True" } else { "False" };
        let values: Vec<f64> = (0..points * dims).map(|i| i as f64).collect();
        let text = header("<f8", order, &format!("({points}, {dims})"));
        let (_folder, path) = file("a.npy", npy(&text, &bytes_of(values.iter().map(|value| value.to_le_bytes()))));
        let whole = Points::read(&path).unwrap();
        for (n, point) in whole.values.chunks(dims).enumerate() {
            for (d, &value) in point.iter().enumerate() {
                prop_assert_eq!(value, if fortran_order { d * points + n } else { n * dims + d } as f64);
            }
        }
        let mut source = Source::open(&path).unwrap();
        let (mut joined, mut chunk) = (Vec::new(), Vec::new());
        while source.read_chunk(joined.len() / dims, size, &mut chunk).unwrap() > 0 {
            joined.extend_from_slice(&chunk);
        }
        prop_assert_eq!(joined, whole.values);
    }

    #[test]
    fn written_arrays_and_recordings_come_back(
        channels in 1..4usize,
        samples in prop::collection::vec(-1e30f32..1e30, 1..50),
    ) {
        let samples = &samples[..samples.len() / channels * channels];
        prop_assume!(!samples.is_empty());
        let folder = tempdir().unwrap();
        let (array, sound) = (folder.path().join("a.npy"), folder.path().join("a.wav"));
        write_npy_f32(&array, &[samples.len() / channels, channels], samples).unwrap();
        write_wav(&sound, 48_000, channels, samples).unwrap();
        let expected: Vec<f64> = samples.iter().map(|&sample| f64::from(sample)).collect();
        for path in [array, sound] {
            let points = Points::read(path).unwrap();
            prop_assert_eq!(points.dims, channels);
            prop_assert_eq!(&points.values, &expected);
        }
    }
}
