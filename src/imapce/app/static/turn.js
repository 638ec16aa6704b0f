// The frames of a turn between two views: M1(t) and M2(t) of imapce.app.geodesic, k x k each.

function times(A, B) {
  return A.map((row) => B[0].map((_, j) => row.reduce((sum, value, i) => sum + value * B[i][j], 0)));
}

function transposed(A) {
  return A[0].map((_, j) => A.map((row) => row[j]));
}

// exp(t L) of a skew 2 x 2 or 3 x 3 matrix, by Rodrigues.
function rotation(L, t) {
  const k = L.length;
  if (k === 2) {
    const a = t * L[1][0];
    return [[Math.cos(a), -Math.sin(a)], [Math.sin(a), Math.cos(a)]];
  }
  const [x, y, z] = [L[2][1], L[0][2], L[1][0]];
  const angle = Math.hypot(x, y, z);
  const same = [[1, 0, 0], [0, 1, 0], [0, 0, 1]];
  if (angle < 1e-12) return same;
  const K = L.map((row) => row.map((value) => value / angle));
  const KK = times(K, K);
  const s = Math.sin(t * angle);
  const c = 1 - Math.cos(t * angle);
  return same.map((row, i) => row.map((value, j) => value + s * K[i][j] + c * KK[i][j]));
}

export function turnAt(turn, t) {
  const old = [];
  const fresh = [];
  for (const angle of turn.angles) {
    const sine = Math.sin(angle);
    if (Math.abs(sine) > 1e-7) {
      const f = Math.sin(t * angle) / sine;
      fresh.push(f);
      old.push(Math.cos(t * angle) - Math.cos(angle) * f);
    } else {
      const eased = Math.cos(angle) > 0 ? t : (1 - Math.cos(Math.PI * t)) / 2;
      fresh.push(eased);
      old.push(1 - eased);
    }
  }
  const frame = times(transposed(turn.U), rotation(turn.L, t));
  const U = turn.U.map((row) => row.map((value, j) => value * old[j]));
  const W = transposed(turn.W).map((row) => row.map((value, j) => value * fresh[j]));
  return [times(U, frame), times(W, frame)];
}
