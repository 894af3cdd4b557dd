//! Every way a write can fail must leave the folder as it was.

use super::*;
use tempfile::{TempDir, tempdir};

fn names(folder: &TempDir) -> Vec<String> {
    let entries = fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn replaces_the_old_content() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a");
    write_atomically(&path, |writer| writer.write_all(b"long old text")).unwrap();
    write_atomically(&path, |writer| writer.write_all(b"new")).unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(names(&folder), ["a"]);
}

#[test]
fn a_failing_writer_leaves_the_old_file_and_nothing_else() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("a");
    fs::write(&path, "old").unwrap();
    let error = write_atomically(&path, |writer| {
        writer.write_all(&[0; 100_000])?;
        Err(io::ErrorKind::StorageFull.into())
    })
    .unwrap_err();
    assert!(error.to_string().starts_with("the disk is full: "), "{error}");
    assert_eq!(error.exit_code(), 1);
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(&folder), ["a"]);
}

#[test]
fn an_own_error_passes_unchanged() {
    let folder = tempdir().unwrap();
    let own = Error::input("what", "where", "advice");
    let error = write_atomically(folder.path().join("a"), |_| Err(own.clone().into())).unwrap_err();
    assert_eq!(error, own);
    assert!(names(&folder).is_empty());
}

#[test]
fn a_missing_folder_is_named() {
    let folder = tempdir().unwrap();
    let error = write_atomically(folder.path().join("no/a"), |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("folder does not exist"), "{error}");
    assert!(error.to_string().contains("no/a"), "{error}");
    assert_eq!(error.exit_code(), 2);
    assert_eq!(check_target(folder.path().join("no/a")).unwrap_err(), error);
    create_dir(folder.path().join("no/deeper")).unwrap();
    check_target(folder.path().join("no/a")).unwrap();
    write_atomically(folder.path().join("no/a"), |_| Ok(())).unwrap();
}

#[test]
fn folders_and_read_only_files_are_kept() {
    let folder = tempdir().unwrap();
    for path in [folder.path().to_path_buf(), folder.path().join(".."), PathBuf::from("/"), PathBuf::new()] {
        let error = write_atomically(&path, |_| Ok(())).unwrap_err();
        assert_eq!(check_target(&path).unwrap_err(), error);
        assert!(error.to_string().starts_with("a folder is in the way"), "{error}");
        assert_eq!(error.exit_code(), 2);
    }
    let path = folder.path().join("a");
    fs::write(&path, "old").unwrap();
    let mut permissions = fs::metadata(&path).unwrap().permissions();
    permissions.set_readonly(true);
    fs::set_permissions(&path, permissions).unwrap();
    let error = write_atomically(&path, |_| Ok(())).unwrap_err();
    assert!(error.to_string().starts_with("the file is read-only"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(&folder), ["a"]);
}

#[test]
fn a_file_in_the_way_of_a_folder_is_named() {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("a"), "").unwrap();
    for path in ["a", "a/b"] {
        let error = create_dir(folder.path().join(path)).unwrap_err();
        assert_eq!(error.exit_code(), 2, "{error}");
    }
    create_dir(folder.path()).unwrap();
}

#[test]
fn staged_files_appear_together_or_not_at_all() {
    let folder = tempdir().unwrap();
    let first = Staged::write(folder.path().join("a"), |writer| writer.write_all(b"1")).unwrap();
    let second = Staged::write(folder.path().join("b"), |_| Err(io::Error::other("no")));
    assert!(second.is_err());
    drop(first);
    assert!(names(&folder).is_empty());
}

#[test]
fn the_longest_name_works() {
    let folder = tempdir().unwrap();
    write_atomically(folder.path().join("n".repeat(255)), |_| Ok(())).unwrap();
    let error = write_atomically(folder.path().join("n".repeat(256)), |_| Ok(())).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{error}");
    assert_eq!(names(&folder).len(), 1);
}

#[cfg(unix)]
mod unix {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn a_link_stays_a_link() {
        let folder = tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::write(&real, "old").unwrap();
        symlink(&real, &link).unwrap();
        write_atomically(&link, |writer| writer.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[test]
    fn permissions_stay() {
        let folder = tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        write_atomically(&path, |_| Ok(())).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn devices_are_written_to_and_stay() {
        write_atomically("/dev/null", |writer| writer.write_all(b"x")).unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_named() {
        let error = write_atomically("/dev/full", |writer| writer.write_all(b"x")).unwrap_err();
        assert!(error.to_string().starts_with("the disk is full: /dev/full"), "{error}");
    }
}
