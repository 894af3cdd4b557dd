//! Screenshots of reports, taken by `tests/report` with a real browser: drawn, in the right scheme, from top to bottom.
//!
//! The colours are those of the style sheet; text has soft edges and is not counted, filled marks and lines are.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

const PAPER: [[u8; 3]; 2] = [[0xfd, 0xfd, 0xfb], [0x14, 0x17, 0x1b]];
const BLUE: [[u8; 3]; 2] = [[0x1d, 0x5f, 0xae], [0x6f, 0xb1, 0xff]];
const ORANGE: [[u8; 3]; 2] = [[0xb5, 0x50, 0x0f], [0xf2, 0x9a, 0x60]];

/// Rows of pixels without any mark, at most: less than half a screen of a phone.
const LONGEST_GAP: usize = 320;

struct Screen {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

impl Screen {
    fn read(path: &Path) -> Self {
        let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let mut reader = png::Decoder::new(BufReader::new(file)).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        let samples = info.color_type.samples();
        assert!(info.bit_depth == png::BitDepth::Eight && samples >= 3, "{}", path.display());
        let pixels = bytes[..info.buffer_size()].chunks_exact(samples).map(|p| [p[0], p[1], p[2]]).collect();
        Self { width: info.width as usize, pixels }
    }

    /// Part of the pixels with about this colour.
    fn part(&self, colour: [u8; 3]) -> f64 {
        self.pixels.iter().filter(|&&pixel| close(pixel, colour)).count() as f64 / self.pixels.len() as f64
    }

    /// Most rows in sequence that have this colour only.
    fn longest_gap(&self, paper: [u8; 3]) -> usize {
        let blank = |row: &[[u8; 3]]| row.iter().all(|&pixel| close(pixel, paper));
        let rows: Vec<bool> = self.pixels.chunks_exact(self.width).map(blank).collect();
        rows.chunk_by(|a, b| a == b).filter(|run| run[0]).map(<[bool]>::len).max().unwrap_or(0)
    }
}

fn close(a: [u8; 3], b: [u8; 3]) -> bool {
    a.iter().zip(b).all(|(&a, b)| a.abs_diff(b) <= 8)
}

#[test]
#[ignore = "tests/report takes the screenshots first"]
fn screens_of_reports() {
    let folder =
        PathBuf::from(std::env::var_os("SPIKELET_SCREENS").expect("SPIKELET_SCREENS, set by tests/report"));
    for page in ["patches", "mixture"] {
        for (size, width) in [("desktop", 1100), ("phone", 390)] {
            let mut shapes = Vec::new();
            for (dark, scheme) in ["light", "dark"].into_iter().enumerate() {
                let name = format!("{page}-{size}-{scheme}.png");
                let screen = Screen::read(&folder.join(&name));
                assert_eq!(screen.width, width, "{name}");
                let (paper, blue) = (screen.part(PAPER[dark]), screen.part(BLUE[dark]));
                let (orange, gap) = (screen.part(ORANGE[dark]), screen.longest_gap(PAPER[dark]));
                println!("{name}: paper {paper:.3}, blue {blue:.4}, orange {orange:.4}, longest gap {gap}");
                assert!((0.4..0.95).contains(&paper), "{name}: {paper} is paper: blank, or the wrong scheme");
                // Bars and curves; of either sign where columns are.
                assert!(blue > 0.005, "{name}: plots are not drawn");
                assert!(orange > 0.0005, "{name}: nothing below zero is drawn");
                assert!(gap < LONGEST_GAP, "{name}: {gap} rows are blank");
                shapes.push((paper, blue));
            }
            // The same page but for its colours.
            let [(paper, blue), (dark_paper, dark_blue)] = shapes[..] else { unreachable!("two schemes") };
            assert!((paper - dark_paper).abs() < 0.02 && (blue - dark_blue).abs() < 0.02, "{page} {size}");
        }
    }
}
