use super::*;

fn text() -> Vec<u8> {
    (0..60_000u32).flat_map(|i| format!("row{:06};", i * 7 % 1000).into_bytes()).collect()
}

/// Incompressible bytes.
fn noise(len: usize) -> Vec<u8> {
    let mut number = 7_u64;
    let next = || {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 33) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

fn be(len: usize) -> [u8; 4] {
    (len as u32).to_be_bytes()
}

#[test]
fn compressed_input_is_restored() {
    let sizes = [0, 1, 100, snappy::CHUNK_LEN, snappy::CHUNK_LEN + 1, lz4::CHUNK_LEN, lz4::CHUNK_LEN + 1];
    let zeros = sizes.map(|len| vec![0; len]);
    let plains = [text(), noise(10), noise(700_000), b"a".to_vec()];
    for plain in zeros.into_iter().chain(plains) {
        for codec in Algorithm::ALL {
            let packed = codec.compress(&plain);
            let known = codec.decompress(&packed, Some(plain.len()), 1 << 20).unwrap();
            assert!(known == plain, "{codec:?}, {} bytes", plain.len());
            let unknown = codec.decompress(&packed, None, 1 << 20).unwrap();
            assert!(unknown == plain, "{codec:?}, {} bytes", plain.len());
        }
    }
}

#[test]
fn no_stream_gains_more_than_its_ratio() {
    for codec in Algorithm::ALL {
        for len in [1 << 10, 1 << 16, 1 << 20, 8 << 20] {
            assert!(codec.is_possible(codec.compress(&vec![0; len]).len(), len), "{codec:?}, {len}");
        }
    }
}

#[test]
fn gzip_members_and_zstd_frames_follow_one_another() {
    for codec in [Algorithm::Gzip, Algorithm::Zstd] {
        let packed = [codec.compress(b"first "), codec.compress(b"second")].concat();
        assert_eq!(codec.decompress(&packed, None, 100).unwrap(), b"first second");
        assert_eq!(codec.decompress(&packed, Some(12), 100).unwrap(), b"first second");
    }
}

/// An input of at most one chunk is written as one chunk. A longer one is a frame of several
/// chunks, followed by an empty frame.
#[test]
fn frames_are_split_as_in_hadoop() {
    for (codec, chunk_len) in [(Algorithm::Snappy, 218_422), (Algorithm::Lz4, 261_100)] {
        assert_eq!(codec.compress(b""), be(0), "{codec:?}");
        for (len, chunks) in [(1, 1), (chunk_len, 1), (chunk_len + 1, 2), (2 * chunk_len + 5, 3)] {
            let packed = codec.compress(&noise(len));
            let (frame_len, mut rest) = packed.split_at(4);
            assert_eq!(frame_len, be(len));
            for _ in 0..chunks {
                let (block_len, after) = rest.split_at(4);
                rest = &after[u32::from_be_bytes(block_len.try_into().unwrap()) as usize..];
            }
            let end: &[u8] = if chunks > 1 { &[0; 4] } else { &[] };
            assert_eq!(rest, end, "{codec:?}, {len} bytes");
        }
    }
}

/// A writer that receives its bytes in pieces produces different frames and chunks.
#[test]
fn frames_are_read_however_they_are_split() {
    for (codec, block) in [
        (Algorithm::Snappy, snappy::compress_block as fn(&[u8]) -> Vec<u8>),
        (Algorithm::Lz4, lz4::compress_block),
        (Algorithm::Zstd, Algorithm::compress_zstd_block),
    ] {
        let mut packed = Vec::new();
        for frame in [&[&b"abcabcabc"[..], b"d"][..], &[b"x"], &[], &[b"12", b"3456", b"7"], &[]] {
            packed.extend(be(frame.iter().map(|chunk| chunk.len()).sum()));
            for chunk in frame {
                let block = block(chunk);
                packed.extend(be(block.len()));
                packed.extend(block);
            }
        }
        let plain = b"abcabcabcdx1234567";
        assert_eq!(codec.decompress(&packed, None, 18).unwrap(), plain, "{codec:?}");
        assert_eq!(codec.decompress(&packed, Some(18), 18).unwrap(), plain, "{codec:?}");
        assert_eq!(
            codec.decompress(&packed, None, 17),
            Err(Error::TooLarge { codec: codec.name(), limit: 17 })
        );
    }
    assert_eq!(Algorithm::Zstd.decompress(&be(0), Some(0), 10).unwrap(), b"");
}

impl Algorithm {
    fn compress_zstd_block(plain: &[u8]) -> Vec<u8> {
        zstd::compress(plain)
    }
}

#[test]
fn a_bomb_stops_at_the_limit() {
    for codec in Algorithm::ALL {
        let packed = codec.compress(&vec![0; 50 << 20]);
        let limit = 1 << 20;
        let too_large = Err(Error::TooLarge { codec: codec.name(), limit });
        assert_eq!(codec.decompress(&packed, None, limit), too_large);
        assert_eq!(codec.decompress(&packed, Some(limit + 1), limit), too_large);
        assert!(codec.decompress(&packed, Some(limit), limit).is_err());
    }
}

#[test]
fn a_stated_length_allocates_no_memory() {
    for codec in Algorithm::ALL {
        let output = codec.decompress(&codec.compress(b"x"), Some(1 << 40), usize::MAX);
        assert_eq!(output, Err(Error::WrongLength { codec: codec.name(), expected: 1 << 40 }));
    }
    // A frame of 2 GiB in a few bytes.
    for codec in [Algorithm::Snappy, Algorithm::Lz4] {
        let packed = [&be(1 << 31)[..], &be(3), b"abc"].concat();
        assert!(matches!(codec.decompress(&packed, None, usize::MAX), Err(Error::Malformed { .. })));
    }
}

#[test]
fn truncated_and_flipped_streams_are_errors_or_bounded() {
    let plain = &text()[..40_000];
    for codec in Algorithm::ALL {
        let packed = codec.compress(plain);
        for cut in 0..packed.len().min(300) {
            let cut_off = codec.decompress(&packed[..cut], Some(plain.len()), 1 << 20);
            assert!(cut_off.is_err(), "{codec:?} cut at {cut}");
        }
        for at in (0..packed.len()).step_by(7) {
            let mut flipped = packed.clone();
            flipped[at] ^= 0x10;
            let Ok(output) = codec.decompress(&flipped, Some(plain.len()), 1 << 20) else { continue };
            assert_eq!(output.len(), plain.len());
            // Gzip and zlib have checks. Gzip header fields that the decoder ignores may change.
            if matches!(codec, Algorithm::Gzip | Algorithm::Zlib) {
                assert!(output == plain, "{codec:?}, flip at {at}");
            }
        }
    }
}

#[test]
fn bytes_after_a_stream_are_errors() {
    for codec in Algorithm::ALL {
        let packed = [&codec.compress(b"abc")[..], b"?"].concat();
        assert!(codec.decompress(&packed, Some(3), 100).is_err(), "{codec:?}");
        assert!(codec.decompress(&packed, None, 100).is_err(), "{codec:?}");
    }
}

fn expanded(codec: Algorithm, packed: &[u8], limit: usize) -> Result<Vec<u8>, Error> {
    let mut expansion = Expansion::new(codec, packed.to_vec().into(), limit, 10_000)?;
    loop {
        if expansion.step()? {
            return Ok(expansion.into_output());
        }
    }
}

#[test]
fn steps_expand_to_the_same_output() {
    for codec in Algorithm::ALL {
        for plain in [text(), noise(300_000), vec![0; 9_999], vec![0; 10_000], vec![7; 700_000], vec![1]] {
            let packed = codec.compress(&plain);
            assert!(expanded(codec, &packed, 1 << 20).unwrap() == plain, "{codec:?}, {} bytes", plain.len());
            assert!(expanded(codec, &packed, plain.len()).unwrap() == plain, "{codec:?} at its limit");
            let too_large = Err(Error::TooLarge { codec: codec.name(), limit: plain.len() - 1 });
            assert_eq!(expanded(codec, &packed, plain.len() - 1), too_large, "{codec:?}");
            assert!(expanded(codec, &packed[..packed.len() - 1], 1 << 20).is_err(), "{codec:?} cut");
            let longer = [&packed[..], b"?"].concat();
            assert!(expanded(codec, &longer, 1 << 20).is_err(), "{codec:?} with a byte at its end");
        }
    }
}

#[test]
fn frames_are_expanded_chunk_by_chunk() {
    for codec in [Algorithm::Snappy, Algorithm::Lz4] {
        let mut expansion =
            Expansion::new(codec, codec.compress(&vec![0; 3 << 20]).into(), 8 << 20, 1).unwrap();
        let mut steps = 0;
        while !expansion.step().unwrap() {
            steps += 1;
        }
        assert!(steps > 10, "{codec:?}: {steps}");
        let claim = [&be(1 << 31)[..], &be(3), b"abc"].concat();
        assert!(matches!(expanded(codec, &claim, usize::MAX), Err(Error::Malformed { .. })));
    }
}
