use super::*;
use crate::data::{Points, npy_f64};
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;

/// An archive as NumPy writes it, with the longer local headers of its arrays.
fn archive(arrays: &[(&str, &[f64])], packed: bool) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for (name, values) in arrays {
        let mut plain = Vec::new();
        npy_f64(&mut plain, &[values.len() / 2, 2], values).unwrap();
        let mut crc = Crc::new();
        crc.update(&plain);
        let content = if packed {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&plain).unwrap();
            encoder.finish().unwrap()
        } else {
            plain.clone()
        };
        let method = if packed { DEFLATED } else { STORED };
        let mut common = vec![20, 0, 0, 0];
        common.extend(method.to_le_bytes());
        common.extend([0; 4]);
        common.extend(crc.sum().to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend((plain.len() as u32).to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        let header = bytes.len() as u32;
        bytes.extend(LOCAL.0);
        bytes.extend(&common);
        bytes.extend(20u16.to_le_bytes());
        bytes.extend(name.as_bytes());
        bytes.extend([0; 20]);
        bytes.extend(&content);
        directory.extend(ENTRY.0);
        directory.extend([20, 0]);
        directory.extend(&common);
        directory.extend([0; 12]);
        directory.extend(header.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let start = bytes.len() as u32;
    bytes.extend(&directory);
    bytes.extend(END.0);
    bytes.extend([0; 4]);
    bytes.extend((arrays.len() as u16).to_le_bytes());
    bytes.extend((arrays.len() as u16).to_le_bytes());
    bytes.extend((directory.len() as u32).to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

const A: [f64; 4] = [1.0, 2.0, 3.0, 4.0];
const B: [f64; 6] = [5.0, 6.0, 7.0, 8.0, 9.0, 10.0];

#[test]
fn arrays_come_out_stored_and_packed() {
    let folder = tempfile::tempdir().unwrap();
    for packed in [false, true] {
        let path = folder.path().join("one.npz");
        std::fs::write(&path, archive(&[("arr_0.npy", &A)], packed)).unwrap();
        assert_eq!(Points::read(&path).unwrap().values, A);
        let path = folder.path().join("two.npz");
        std::fs::write(&path, archive(&[("train.npy", &A), ("test.npy", &B)], packed)).unwrap();
        let named = |name: &str| PathBuf::from(format!("{}:{name}", path.display()));
        let mut source = crate::data::Source::open(named("test")).unwrap();
        let mut chunk = Vec::new();
        assert_eq!((source.points(), source.read_chunk(1, 9, &mut chunk).unwrap()), (3, 2));
        assert_eq!(chunk, B[2..]);
        assert_eq!(crate::data::read_array(named("train.npy")).unwrap().values, A);
        let several = Points::read(&path).unwrap_err();
        assert_eq!(several.exit_code(), 2);
        let several = several.to_string();
        assert!(several.contains("(train, test)") && several.contains("two.npz:train"), "{several}");
        let missing = Points::read(named("other")).unwrap_err().to_string();
        assert!(
            missing.contains("no array other") && missing.contains("choose one of train, test"),
            "{missing}"
        );
    }
}

/// Cut anywhere or with any byte changed, an archive is read or refused, never more.
#[test]
fn damaged_archives_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    for packed in [false, true] {
        let whole = archive(&[("a.npy", &A)], packed);
        for cut in 1..whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            assert_eq!(Points::read(&path).unwrap_err().exit_code(), 2, "{cut}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            std::fs::write(&path, &bytes).unwrap();
            if let Err(error) = Points::read(&path) {
                assert_eq!(error.exit_code(), 2, "{at}: {error}");
            }
        }
    }
    std::fs::write(&path, archive(&[("readme.txt", &A)], false)).unwrap();
    assert!(Points::read(&path).unwrap_err().to_string().starts_with("the archive holds no arrays"));
}

#[test]
fn names_follow_a_colon() {
    let name = |text: &str| split(Path::new(text)).map(|(file, name)| (file.display().to_string(), name));
    assert_eq!(name("a/b.npz"), Some(("a/b.npz".into(), None)));
    assert_eq!(name("a/b.NPZ:x"), Some(("a/b.NPZ".into(), Some("x".into()))));
    assert_eq!(name("a.npz:b/c.npy"), Some(("a.npz".into(), Some("b/c.npy".into()))));
    assert_eq!((name("a.npy"), name("npz")), (None, None));
}
