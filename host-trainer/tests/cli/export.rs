//! Exported source text, compiled and run.

use crate::desk::Desk;
use std::fs;
use std::process::Command;

/// Compiles and runs, and returns what the program wrote.
fn compiled(desk: &Desk, compiler: &str, flags: &[&str], source: &str) -> Vec<u8> {
    let output = Command::new(compiler)
        .args(flags)
        .args(["-o", "program", source])
        .current_dir(desk.folder.path())
        .output()
        .unwrap_or_else(|error| panic!("{compiler}: {error}"));
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    let run = Command::new(desk.path("program")).output().unwrap();
    assert!(run.status.success());
    run.stdout
}

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

#[test]
fn the_header_compiles_as_c_and_cpp_and_holds_the_blob() {
    let desk = Desk::with_model();
    desk.good("export model.spk --format c --out model.h");
    let program = r#"
        #include "model.h"
        #include "model.h"
        #include <stdint.h>
        #include <stdio.h>
        static MODEL_ALIGNED unsigned char memory[MODEL_STATE_SIZE];
        #if MODEL_DIMS != 4 || MODEL_LATENTS != 6 || MODEL_SELECTED != 6 || MODEL_MAX_ACTIVE != 6
        #error sizes
        #endif
        #if MODEL_STATES != 25 || MODEL_STATE_ALIGN != 8
        #error states
        #endif
        int main(void) {
            if ((uintptr_t)model_blob % 8 || (uintptr_t)memory % 8 || sizeof model_blob != MODEL_BLOB_SIZE) return 1;
            return fwrite(model_blob, 1, sizeof model_blob, stdout) != sizeof model_blob;
        }"#;
    let blob = fs::read(desk.path("model.spk")).unwrap();
    for (compiler, standard, source) in
        [("cc", "-std=c99", "main.c"), ("cc", "-std=c11", "main.c"), ("c++", "-std=c++11", "main.cpp")]
    {
        fs::write(desk.path(source), program).unwrap();
        let flags = [&[standard][..], &WARNINGS].concat();
        assert!(compiled(&desk, compiler, &flags, source) == blob, "{compiler} {standard}");
    }
    let json: serde_json::Value = serde_json::from_str(&desk.good("inspect model.spk --json")).unwrap();
    let header = fs::read_to_string(desk.path("model.h")).unwrap();
    assert!(header.contains(&format!("#define MODEL_STATE_SIZE {}UL", json["arena_bytes"])));
}

/// Text in a model that tries to get out of the comments of what is made from it.
#[test]
fn hostile_provenance_stays_a_comment() {
    let desk = Desk::with_model();
    let blob_of = |name: &str| fs::read(desk.path(name)).unwrap();
    for (index, text) in [
        "*/ #error out /*",
        "/* // */ int x; */",
        "two\nlines\r\n#error out\n*/\n#error out",
        "*\\\n/ #error out",
        "ends in a backslash \\",
        "ends in a trigraph ??/",
        "\u{202e}turned around\u{2066} \u{1b}[31m\u{7f}\u{2028}#error",
        "{upper} {} %s \"quoted\" é 測",
        "",
    ]
    .into_iter()
    .enumerate()
    {
        let model = format!("m{index}.spk");
        desk.good_with(&[
            "import",
            "--model",
            "gsc",
            "--w",
            "W.npy",
            "--sigma2",
            "1",
            "--provenance",
            text,
            "--out",
            &model,
        ]);
        let json: serde_json::Value =
            serde_json::from_str(&desk.good(&format!("inspect {model} --json"))).unwrap();
        assert_eq!(json["provenance"], text);
        assert_eq!(
            desk.good(&format!("inspect {model}")).lines().count(),
            desk.good("inspect model.spk").lines().count()
        );
        assert!(!desk.good(&format!("inspect {model}")).contains('\u{1b}'));

        desk.good(&format!("export {model} --format c --name dut --out dut.h"));
        let program = "#include \"dut.h\"\n#include <stdio.h>\nint main(void) { return fwrite(dut_blob, 1, DUT_BLOB_SIZE, stdout) != DUT_BLOB_SIZE; }\n";
        fs::write(desk.path("main.c"), program).unwrap();
        let flags = [&["-std=c99"][..], &WARNINGS].concat();
        assert!(compiled(&desk, "cc", &flags, "main.c") == blob_of(&model), "{text}");

        desk.good(&format!("export {model} --format rust --name dut --out dut.rs"));
        let program = "mod spikelet { pub struct Aligned<const N: usize>([u8; N]); impl<const N: usize> Aligned<N> { \
                       pub const fn new(b: &[u8; N]) -> Self { Self(*b) } pub fn bytes(&self) -> &[u8] { &self.0 } } }\n\
                       mod dut { use super::spikelet; include!(\"dut.rs\"); }\n\
                       fn main() { use std::io::Write; std::io::stdout().write_all(dut::DUT.bytes()).unwrap(); }\n";
        fs::write(desk.path("main.rs"), program).unwrap();
        assert!(compiled(&desk, "rustc", &["-Dwarnings"], "main.rs") == blob_of(&model), "{text}");
    }
    desk.good("export m0.spk --format bin --out m0.bin");
    assert!(blob_of("m0.bin") == blob_of("m0.spk"));
}
