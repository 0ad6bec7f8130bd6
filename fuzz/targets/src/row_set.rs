//! Row sets, as servers send them with sums.

use louver_primitives::rowset::{from_ids, from_runs, read, Run, ROW_LIMIT, WEIGHT_LIMIT};

pub(crate) fn run(data: &[u8]) {
    let (mut runs, mut rows) = (Vec::new(), 0_u64);
    let done = read(data, |run| {
        assert!(run.count > 0 && run.weight > 0 && run.first + run.count <= ROW_LIMIT);
        rows += run.count * run.weight;
        runs.push(run);
    });
    assert!(rows <= WEIGHT_LIMIT, "a set of too many rows");
    let apart = runs
        .windows(2)
        .all(|pair| pair[0].first + pair[0].count <= pair[1].first);
    if done.is_ok() && apart {
        let again = from_runs(&runs).expect("what was read can be written");
        let mut total = 0;
        read(&again, |run| total += run.count * run.weight).expect("what was written can be read");
        assert_eq!(total, rows);
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let lists: [&[i64]; 4] = [&[], &[7], &[1, 2, 3, 3, 9], &[0, 2, 4, 6, 8, 10, 40, 400]];
    let mut seeds: Vec<Vec<u8>> = lists
        .iter()
        .map(|ids| from_ids(&mut ids.to_vec()).expect("small ids"))
        .collect();
    let wide = Run {
        first: 1 << 40,
        count: 1 << 20,
        weight: 5,
    };
    seeds.push(from_runs(&[wide]).expect("a run"));
    let every: Vec<Run> = (0..64)
        .map(|n| Run {
            first: 3 * n,
            count: 2,
            weight: 1 + n % 3,
        })
        .collect();
    seeds.push(from_runs(&every).expect("runs"));
    seeds
}
