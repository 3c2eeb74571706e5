// The messages of the explorer: a header of JSON, then arrays as they lie in memory; see messages.py.

const ARRAYS = { float32: Float32Array, int32: Int32Array, uint8: Uint8Array };

/** The header and the arrays of a message, given as an ArrayBuffer or a view of one. */
export function unpack(data) {
  const view = ArrayBuffer.isView(data) ? data : new Uint8Array(data);
  // arrays must start at multiples of their size: a view that does not start at one of 8 is copied
  const bytes = view.byteOffset % 8 === 0 ? view : new Uint8Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
  const { buffer, byteOffset } = bytes;
  const start = new Uint8Array(buffer, byteOffset, 4);
  if (String.fromCharCode(...start) !== "INSC") throw new Error("not a message of the explorer");
  const length = new DataView(buffer, byteOffset + 4, 4).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, byteOffset + 8, length)));
  const arrays = {};
  for (const [name, type, shape, offset] of header.arrays) {
    const count = shape.reduce((a, b) => a * b, 1);
    arrays[name] = new ARRAYS[type](buffer, byteOffset + 8 + length + offset, count);
    arrays[name].shape = shape;
  }
  delete header.arrays;
  return { header, arrays };
}
