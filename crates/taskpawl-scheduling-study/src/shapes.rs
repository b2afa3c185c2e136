use crate::instance::Instance;
use taskpawl_testkit::Random;

/// A kind of graph.
///
/// The scientific workflows have the published shapes and mean lengths: S. Bharathi et al., "Characterization of
/// Scientific Workflows", WORKS 2008, and G. Juve et al., "Characterizing and Profiling Scientific Workflows", Future
/// Generation Computer Systems 29(3), 2013. Each length is uniformly distributed between 0.5 and 1.5 times the mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    /// Layers; each task depends on up to three tasks of the previous layer.
    Layered,
    /// Each task depends on up to three of the sixty tasks before it.
    Random,
    /// Wide forks, each joined before the next one.
    ForkJoin,
    /// A tree that branches out.
    OutTree,
    /// A tree that joins.
    InTree,
    /// Mosaics of the sky. Tiles have fifteen images, so that small graphs contain several.
    Montage,
    /// Earthquake hazards.
    CyberShake,
    /// Genome sequencing.
    Epigenomics,
    /// Search for gravitational waves.
    Inspiral,
    /// Search for small RNA.
    Sipht,
}

impl Shape {
    /// All kinds.
    pub(crate) const ALL: [Self; 10] = [
        Self::Layered,
        Self::Random,
        Self::ForkJoin,
        Self::OutTree,
        Self::InTree,
        Self::Montage,
        Self::CyberShake,
        Self::Epigenomics,
        Self::Inspiral,
        Self::Sipht,
    ];

    /// Returns the name for tables and plots.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Layered => "layered",
            Self::Random => "random",
            Self::ForkJoin => "fork-join",
            Self::OutTree => "out-tree",
            Self::InTree => "in-tree",
            Self::Montage => "Montage",
            Self::CyberShake => "CyberShake",
            Self::Epigenomics => "Epigenomics",
            Self::Inspiral => "LIGO Inspiral",
            Self::Sipht => "SIPHT",
        }
    }

    /// Generates a graph whose width is proportional to `scale`.
    pub(crate) fn draw(self, random: &mut Random, scale: usize) -> Instance {
        let mut graph = Instance::default();
        match self {
            Self::Layered => layered(&mut graph, random, scale),
            Self::Random => any(&mut graph, random, scale),
            Self::ForkJoin => fork_join(&mut graph, random, scale),
            Self::OutTree => out_tree(&mut graph, random, scale),
            Self::InTree => in_tree(&mut graph, random, scale),
            Self::Montage => montage(&mut graph, random, scale),
            Self::CyberShake => cyber_shake(&mut graph, random, scale),
            Self::Epigenomics => epigenomics(&mut graph, random, scale),
            Self::Inspiral => inspiral(&mut graph, random, scale),
            Self::Sipht => sipht(&mut graph, random, scale),
        }
        graph
    }
}

/// Returns a length in milliseconds around a mean, which is given in hundredths of a second.
fn around(random: &mut Random, hundredths: u64) -> u64 {
    hundredths * (500 + random.below_u64(1_001)) / 100
}

/// Returns a length between 0.1 and 10 seconds.
fn any_length(random: &mut Random) -> u64 {
    100 + random.below_u64(9_900)
}

fn layered(graph: &mut Instance, random: &mut Random, scale: usize) {
    let mut before: Vec<usize> = Vec::new();
    for _ in 0..8 {
        let width = 20 * scale + random.below(20 * scale);
        let layer = (0..width).map(|_| {
            let count = 1 + random.below(3);
            let needs: Vec<usize> = (0..count).filter_map(|_| random.one_of(&before).copied()).collect();
            let length = any_length(random);
            graph.add(length, &needs)
        });
        before = layer.collect();
    }
}

fn any(graph: &mut Instance, random: &mut Random, scale: usize) {
    for task in 0..200 * scale {
        let count = if task == 0 { 0 } else { random.below(4) };
        let needs: Vec<usize> = (0..count).map(|_| task - 1 - random.below(task.min(60))).collect();
        graph.add(any_length(random), &needs);
    }
}

fn fork_join(graph: &mut Instance, random: &mut Random, scale: usize) {
    let mut join = Vec::new();
    for _ in 0..4 {
        let width = 40 * scale + random.below(40 * scale);
        let fork: Vec<usize> = (0..width).map(|_| graph.add(any_length(random), &join)).collect();
        join = vec![graph.add(500, &fork)];
    }
}

fn out_tree(graph: &mut Instance, random: &mut Random, scale: usize) {
    let mut above = vec![graph.add(any_length(random), &[])];
    while graph.len() < 250 * scale {
        let mut below = Vec::new();
        for task in above {
            let count = 1 + random.below(4);
            below.extend((0..count).map(|_| graph.add(any_length(random), &[task])));
        }
        above = below;
    }
}

fn in_tree(graph: &mut Instance, random: &mut Random, scale: usize) {
    let mut above: Vec<usize> = (0..128 * scale).map(|_| graph.add(any_length(random), &[])).collect();
    while above.len() > 1 {
        let size = 2 + random.below(3);
        above = above.chunks(size).map(|needs| graph.add(any_length(random), needs)).collect();
    }
}

fn montage(graph: &mut Instance, random: &mut Random, scale: usize) {
    let images = 60 * scale;
    let projected: Vec<usize> = (0..images).map(|_| graph.add(around(random, 173), &[])).collect();
    let pairs = (0..images)
        .flat_map(|undo_snapshot| (1..=3).map(move |next| (undo_snapshot, (undo_snapshot + next) % images)));
    let overlaps: Vec<usize> = pairs
        .map(|(one, other)| graph.add(around(random, 66), &[projected[one], projected[other]]))
        .collect();
    let fitted = graph.add(around(random, 14_326), &overlaps);
    let model = graph.add(around(random, 38_449), &[fitted]);
    let corrected: Vec<usize> = projected
        .iter()
        .map(|undo_snapshot| graph.add(around(random, 172), &[model, *undo_snapshot]))
        .collect();
    let mosaics: Vec<usize> = (corrected.chunks(15))
        .map(|tile| {
            let table = graph.add(around(random, 278), tile);
            let added = graph.add(around(random, 28_237), &[table]);
            graph.add(around(random, 6_610), &[added])
        })
        .collect();
    graph.add(around(random, 64), &mosaics);
}

fn cyber_shake(graph: &mut Instance, random: &mut Random, scale: usize) {
    let (mut seismograms, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..4 * scale {
        let extracted = graph.add(around(random, 11_058), &[]);
        for _ in 0..25 {
            let seismogram = graph.add(around(random, 7_947), &[extracted]);
            seismograms.push(seismogram);
            peaks.push(graph.add(around(random, 55), &[seismogram]));
        }
    }
    graph.add(around(random, 26_573), &seismograms);
    graph.add(around(random, 19_580), &peaks);
}

fn epigenomics(graph: &mut Instance, random: &mut Random, scale: usize) {
    let mut lanes = Vec::new();
    for _ in 0..4 {
        let split = graph.add(around(random, 3_432), &[]);
        let chunks = (8 + random.below(12)) * scale;
        let mapped: Vec<usize> = (0..chunks)
            .map(|_| {
                [247, 48, 140, 20_189]
                    .into_iter()
                    .fold(split, |before, mean| graph.add(around(random, mean), &[before]))
            })
            .collect();
        lanes.push(graph.add(around(random, 1_101), &mapped));
    }
    let merged = graph.add(around(random, 1_101), &lanes);
    let indexed = graph.add(around(random, 4_357), &[merged]);
    graph.add(around(random, 5_595), &[indexed]);
}

fn inspiral(graph: &mut Instance, random: &mut Random, scale: usize) {
    for _ in 0..8 * scale {
        let width = 5 + random.below(6);
        let mut before = Vec::new();
        // Template banks, then trigger banks. Each feeds an analysis, and the analyses of a group are compared.
        for mean in [1_814, 511] {
            let found: Vec<usize> = (0..width)
                .map(|_| {
                    let bank = graph.add(around(random, mean), &before);
                    graph.add(around(random, 46_021), &[bank])
                })
                .collect();
            before = vec![graph.add(around(random, 537), &found)];
        }
    }
}

fn sipht(graph: &mut Instance, random: &mut Random, scale: usize) {
    for _ in 0..6 * scale {
        let count = 15 + random.below(8);
        let patser: Vec<usize> = (0..count).map(|_| graph.add(around(random, 96), &[])).collect();
        let patser = graph.add(around(random, 3), &patser);
        let searches: Vec<usize> = [3_241, 59_494, 2_569, 331_112]
            .into_iter()
            .map(|mean| graph.add(around(random, mean), &[]))
            .collect();
        let rna = graph.add(around(random, 1_244), &searches);
        let parsed = graph.add(around(random, 73), &[rna]);
        let mut all = vec![patser, graph.add(around(random, 44_088), &[rna])];
        all.extend([337, 60, 68].into_iter().map(|mean| graph.add(around(random, mean), &[parsed])));
        graph.add(around(random, 14), &all);
    }
}
