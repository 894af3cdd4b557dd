//! Occluding objects: shares and posteriors against enumeration, monotone EM, objects that are found again.

use spikelet::rng::Rng;
use spikelet_trainer::gp::KernelName;
use spikelet_trainer::inveca::locate::{Learned, Scan, Told, candidates, plain_scan, scan};
use spikelet_trainer::inveca::windows::Windows;
use spikelet_trainer::inveca::{Objects, Posterior, shares};

/// Over all masks and all orders of depth.
#[test]
fn shares_are_those_of_all_masks_and_depths() {
    for masks in [vec![0.3], vec![0.3, 0.9], vec![0.2, 0.5, 0.7]] {
        let n = masks.len();
        let orders: Vec<Vec<usize>> = (0..n.pow(n as u32))
            .map(|e| (0..n).map(|i| e / n.pow(i as u32) % n).collect::<Vec<_>>())
            .filter(|order| (0..n).all(|k| order.contains(&k)))
            .collect();
        let (mut own, mut none) = (vec![0.0; n], 0.0);
        for held in 0..1usize << n {
            let p: f64 = (0..n).map(|k| if held >> k & 1 == 1 { masks[k] } else { 1.0 - masks[k] }).product();
            for order in &orders {
                match order.iter().find(|k| held >> **k & 1 == 1) {
                    Some(&front) => own[front] += p / orders.len() as f64,
                    None => none += p / orders.len() as f64,
                }
            }
        }
        let (found, background) = shares(&masks);
        assert!((background - none).abs() < 1e-12);
        found.iter().zip(&own).for_each(|(a, b)| assert!((a - b).abs() < 1e-12, "{masks:?}: {a} {b}"));
    }
}

/// Two objects of 2 x 2 on 4 x 4 pixels.
fn tiny(rng: &mut Rng) -> Objects {
    let mut numbers = |n: usize, low: f64, high: f64| -> Vec<f64> {
        (0..n).map(|_| low + (high - low) * rng.uniform::<f64>()).collect()
    };
    Objects {
        side: 2,
        canvas: 4,
        masks: numbers(8, 0.2, 0.95),
        features: numbers(8, 0.3, 1.5),
        prior: vec![0.3, 0.5],
        noise: 0.05,
        background: 0.1,
        background_noise: 0.02,
    }
}

/// Both objects, anywhere.
fn everywhere(objects: &Objects) -> Vec<(usize, Vec<usize>)> {
    (0..objects.count()).map(|object| (object, (0..objects.positions()).collect())).collect()
}

fn density(y: f64, mean: f64, variance: f64) -> f64 {
    (-0.5 * (y - mean).powi(2) / variance).exp() / (std::f64::consts::TAU * variance).sqrt()
}

#[test]
fn posteriors_are_their_definition() {
    let mut rng = Rng::new(1);
    let objects = tiny(&mut rng);
    let image: Vec<f64> = (0..16).map(|_| 0.1 + 0.4 * rng.uniform::<f64>()).collect();
    let places = objects.places();
    let (mut total, mut of_first) = (0.0, vec![0.0; objects.positions()]);
    // 9 stands for absent.
    for (a, b) in (0..100).map(|e| (e / 10, e % 10)) {
        let state: Vec<(usize, usize)> =
            [(0, a), (1, b)].into_iter().filter(|(_, at)| *at < objects.positions()).collect();
        let mut p = 1.0;
        for (h, at) in [(0, a), (1, b)] {
            let present = objects.prior[h] / objects.positions() as f64;
            p *= if at < objects.positions() { present } else { 1.0 - objects.prior[h] };
        }
        for (i, y) in image.iter().enumerate() {
            let here: Vec<(usize, usize)> = state
                .iter()
                .filter_map(|&(h, at)| {
                    let (r, c) = ((i / 4).checked_sub(at / places)?, (i % 4).checked_sub(at % places)?);
                    (r < 2 && c < 2).then_some((h, r * 2 + c))
                })
                .collect();
            let masks: Vec<f64> = here.iter().map(|(h, j)| objects.masks[h * 4 + j]).collect();
            let (own, none) = shares(&masks);
            let seen: f64 = here
                .iter()
                .zip(own)
                .map(|((h, j), w)| w * density(*y, objects.features[h * 4 + j], objects.noise))
                .sum();
            p *= seen + none * density(*y, objects.background, objects.background_noise);
        }
        total += p;
        if a < objects.positions() {
            of_first[a] += p;
        }
    }
    let found = objects.infer(&image, &everywhere(&objects), None);
    assert!((found.evidence - total.ln()).abs() < 1e-10, "{} {}", found.evidence, total.ln());
    for (placed, probability) in found.placed.iter().filter(|(placed, _)| placed.object == 0) {
        assert!((probability - of_first[placed.position] / total).abs() < 1e-8);
    }
}

#[test]
fn over_all_states_the_likelihood_never_falls() {
    let mut rng = Rng::new(2);
    let images: Vec<f64> = (0..40 * 16).map(|_| rng.uniform::<f64>() * rng.uniform::<f64>()).collect();
    let mut objects = tiny(&mut rng);
    let mut before = f64::NEG_INFINITY;
    for iteration in 0..15 {
        let mut sums = objects.sums();
        for image in images.chunks_exact(16) {
            objects.infer(image, &everywhere(&objects), Some(&mut sums));
        }
        assert!(sums.evidence >= before - 1e-7, "{iteration}: {before} {}", sums.evidence);
        before = sums.evidence;
        objects.learn(&sums, 1e-6);
    }
}

/// Two objects, a cross and a frame, at any place of 12 x 12 pixels: found again, and located, by a scan.
#[test]
fn objects_are_found_and_located() {
    const SIDE: usize = 4;
    const CANVAS: usize = 12;
    let shapes = [
        [0, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 0].map(f64::from),
        [1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1, 1, 1, 1].map(f64::from),
    ];
    let values = [0.6, 1.0];
    let mut rng = Rng::new(3);
    let (mut images, mut truth) = (Vec::new(), Vec::new());
    for _ in 0..120 {
        let mut image = vec![0.0; CANVAS * CANVAS];
        let mut placed = Vec::new();
        for h in 0..2 {
            if rng.uniform::<f64>() < 0.5 {
                let at = [(); 2].map(|()| (rng.uniform::<f64>() * (CANVAS - SIDE + 1) as f64) as usize);
                for j in (0..SIDE * SIDE).filter(|&j| shapes[h][j] > 0.0) {
                    image[(at[0] + j / SIDE) * CANVAS + at[1] + j % SIDE] = values[h];
                }
                placed.push((h, at[0] * (CANVAS - SIDE + 1) + at[1]));
            }
        }
        images.extend(image.iter().map(|y| y + 0.03 * rng.normal::<f64>()));
        truth.push(placed);
    }
    let mut objects = Objects::first(&images, CANVAS, SIDE, 2, 0.0, &mut rng);
    let mut posteriors: Vec<Posterior> = Vec::new();
    for _ in 0..8 {
        let scores = scan(&objects, &images);
        let mut sums = objects.sums();
        let each = objects.count() * objects.positions();
        posteriors = images
            .chunks_exact(CANVAS * CANVAS)
            .zip(scores.chunks_exact(each))
            .map(|(image, scores)| objects.infer(image, &candidates(&objects, scores, 2, 2), Some(&mut sums)))
            .collect();
        objects.learn(&sums, 1e-4);
    }
    // Which learned object is which, by what is to be seen of it: where an object is as dark as the background, its mask may hold or not.
    let far = |h: usize, k: usize| -> f64 {
        let seen = |j: usize| objects.masks[k * 16 + j] * objects.features[k * 16 + j];
        (0..16).map(|j| (seen(j) - values[h] * shapes[h][j]).abs()).sum::<f64>()
    };
    let first = if far(0, 0) < far(0, 1) { 0 } else { 1 };
    let learned = [first, 1 - first];
    for (h, &k) in learned.iter().enumerate() {
        assert!(far(h, k) < 1.0, "object {h}: {} {:?}", far(h, k), &objects.masks);
    }
    let (mut all, mut near) = (0, 0);
    for (placed, posterior) in truth.iter().zip(&posteriors) {
        for &(h, at) in placed {
            all += 1;
            let best = posterior.placed.iter().filter(|(p, _)| p.object == learned[h]);
            near +=
                usize::from(best.max_by(|a, b| a.1.total_cmp(&b.1)).is_some_and(|(p, _)| p.position == at));
        }
    }
    assert!(near as f64 > 0.9 * all as f64, "{near} of {all}");

    // Regression keeps what the last posterior says of an image; other images alone say little of it.
    let locations = |told: Told| {
        let mut regression = Learned::default();
        regression.fit(&objects, &images, &posteriors, (KernelName::Rbf, 120)).unwrap();
        let mut near = 0;
        for (n, placed) in truth.iter().enumerate() {
            let scores = &regression.scores(&objects, &posteriors, n, told);
            let found = candidates(&objects, scores, 2, 1);
            for &(h, at) in placed {
                near +=
                    usize::from(found.iter().any(|(object, best)| *object == learned[h] && best[0] == at));
            }
        }
        near as f64 / all as f64
    };
    // Windows say it of images that were not learned from, too: here of the second half.
    let half = images.len() / 2;
    let (seen, new) = images.split_at(half);
    let again = Scan::new(&objects, &images);
    // With one window for every 2 x 2 positions the second look tells which of them.
    for (cell, looks) in [(1, 0), (2, 8)] {
        let mut windows = Windows::new(cell);
        windows.fit(&objects, seen, &posteriors[..60], (KernelName::Rbf, 240, 120), &mut rng).unwrap();
        let (mut asked, mut found) = (0, 0);
        for (placed, image) in truth[60..].iter().zip(new.chunks_exact(CANVAS * CANVAS)) {
            let mut scores = windows.scores(&objects, image);
            if looks > 0 {
                again.look_again(&objects, image, &mut scores, looks);
                let looked = scores.iter().filter(|score| score.is_finite()).count();
                assert_eq!(looked, looks * objects.count());
            }
            for &(h, at) in placed {
                asked += 1;
                let best = candidates(&objects, &scores, 2, 1);
                found +=
                    usize::from(best.iter().any(|(object, best)| *object == learned[h] && best[0] == at));
            }
        }
        assert!(found as f64 > 0.8 * asked as f64, "cells of {cell}: {found} of {asked}");
    }
    // Tables round pixels; the order of positions stays.
    let (tabled, plain) =
        (scan(&objects, &images[..CANVAS * CANVAS]), plain_scan(&objects, &images[..CANVAS * CANVAS]));
    let first = |scores: &[f64]| candidates(&objects, scores, 2, 1);
    assert_eq!(first(&tabled), first(&plain));

    let (by_all, by_others) = (locations(Told::ByAll), locations(Told::ByOthers));
    assert!(by_all > 0.9 && by_all > by_others, "{by_all} {by_others}");
}
