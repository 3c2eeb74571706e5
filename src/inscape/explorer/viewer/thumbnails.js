// Points as pictures on small canvases: bytes of the strip, numbers under the cursor, signed gradients.

/** A canvas with a picture of bytes (height, width[, 3]); grey is ink on paper, as in the still pictures. */
export function byteImage(bytes, [height, width, channels]) {
  return painted(height, width, (i) => {
    if (channels === 3) return [bytes[3 * i], bytes[3 * i + 1], bytes[3 * i + 2]];
    return Array(3).fill(255 - bytes[i]);
  });
}

/** A canvas with the numbers of a point as a picture, low and high being paper and ink. */
export function pointImage(values, shape, picture, [low, high], kept) {
  const [height, width, channels] = picture;
  const index = pixelIndex(shape, picture);
  const part = (v) => 255 * Math.min(Math.max((v - low) / (high - low || 1), 0), 1);
  const paint = (i) =>
    channels === 3 ? [0, 1, 2].map((k) => part(values[index(i, k)])) : Array(3).fill(255 - part(values[index(i, 0)]));
  return painted(height, width, paint, kept);
}

/** A canvas with signed numbers: blue below zero, orange above, paper at zero. */
export function signedImage(values, shape, picture, dark, kept) {
  const [height, width, channels] = picture;
  const index = pixelIndex(shape, picture);
  let most = 0;
  for (const v of values) most = Math.max(most, Math.abs(v));
  const paper = dark ? [28, 30, 33] : [255, 255, 255];
  const [below, above] = [[31, 119, 210], [230, 120, 10]];
  return painted(
    height,
    width,
    (i) => {
      let v = 0;
      for (let k = 0; k < (channels ?? 1); k++) v += values[index(i, k)] / (channels ?? 1);
      const part = most ? Math.min(Math.abs(v) / most, 1) : 0;
      const ink = v < 0 ? below : above;
      return paper.map((p, k) => p + part * (ink[k] - p));
    },
    kept,
  );
}

/** From a pixel and a channel to a place in the point, whose channels may come first or last. */
function pixelIndex(shape, [height, width, channels]) {
  const isFirst = channels === 3 && shape.length === 3 && shape[0] === 3;
  if (isFirst) return (i, k) => k * height * width + i;
  return channels === 3 ? (i, k) => 3 * i + k : (i) => i;
}

function painted(height, width, colour, kept) {
  const canvas = kept ?? document.createElement("canvas");
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const context = canvas.getContext("2d");
  const data = context.createImageData(width, height);
  for (let i = 0; i < width * height; i++) data.data.set([...colour(i), 255], 4 * i);
  context.putImageData(data, 0, 0);
  return canvas;
}
