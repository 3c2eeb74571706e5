// Many faces at once: WebGL2 draws them as triangles of one colour each, so that moving them costs nothing.

const VERTEX = `#version 300 es
in vec2 place; in vec4 paint; uniform vec2 scale; uniform vec2 shift; out vec4 colour;
void main() { gl_Position = vec4(place * scale + shift, 0.0, 1.0); colour = paint; }`;
const FRAGMENT = `#version 300 es
precision mediump float; in vec4 colour; out vec4 pixel;
void main() { pixel = vec4(colour.rgb * colour.a, colour.a); }`;

/** Draws the faces and edges of a message; null where there is no WebGL2. */
export class Triangles {
  static on(canvas) {
    const gl = canvas.getContext("webgl2", { antialias: true, premultipliedAlpha: true });
    return gl ? new Triangles(gl) : null;
  }

  constructor(gl) {
    this.gl = gl;
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.bindAttribLocation(program, 0, "place");
    gl.bindAttribLocation(program, 1, "paint");
    gl.linkProgram(program);
    gl.useProgram(program);
    this.scale = gl.getUniformLocation(program, "scale");
    this.shift = gl.getUniformLocation(program, "shift");
    this.faces = this.buffers();
    this.lines = this.buffers();
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  buffers() {
    const { gl } = this;
    const mesh = { array: gl.createVertexArray(), place: gl.createBuffer(), paint: gl.createBuffer(), index: gl.createBuffer(), count: 0 };
    gl.bindVertexArray(mesh.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, mesh.place);
    gl.enableVertexAttribArray(0);
    gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, mesh.paint);
    gl.enableVertexAttribArray(1);
    gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, 0, 0);
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, mesh.index);
    gl.bindVertexArray(null);
    return mesh;
  }

  fill(target, place, paint, index) {
    const { gl } = this;
    gl.bindVertexArray(target.array);
    gl.bindBuffer(gl.ARRAY_BUFFER, target.place);
    gl.bufferData(gl.ARRAY_BUFFER, place, gl.STATIC_DRAW);
    gl.bindBuffer(gl.ARRAY_BUFFER, target.paint);
    gl.bufferData(gl.ARRAY_BUFFER, paint, gl.STATIC_DRAW);
    gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, index, gl.STATIC_DRAW);
    gl.bindVertexArray(null);
    target.count = index.length;
  }

  /** Take the faces of a message; `colours` has four bytes for each. */
  setFaces({ vertices, corners, start }, colours) {
    const n = corners.length;
    const place = new Float32Array(2 * n);
    const paint = new Uint32Array(n);
    const packed = new Uint32Array(colours.buffer, colours.byteOffset, colours.length / 4);
    const index = new Uint32Array(3 * (n - 2 * (start.length - 1)));
    let k = 0;
    for (let f = 0; f + 1 < start.length; f++) {
      const [first, last] = [start[f], start[f + 1]];
      for (let i = first; i < last; i++) {
        place[2 * i] = vertices[2 * corners[i]];
        place[2 * i + 1] = vertices[2 * corners[i] + 1];
        paint[i] = packed[f];
      }
      for (let i = first + 2; i < last; i++) {
        index[k++] = first;
        index[k++] = i - 1;
        index[k++] = i;
      }
    }
    this.fill(this.faces, place, new Uint8Array(paint.buffer), index);
  }

  /** Take edges, all in one colour of four bytes. */
  setEdges({ vertices }, index, colour) {
    const [packed] = new Uint32Array(new Uint8Array(colour).buffer);
    const paint = new Uint32Array(vertices.length / 2).fill(packed);
    this.fill(this.lines, vertices, new Uint8Array(paint.buffer), index);
  }

  /** Draw with window coordinates (-1 to 1) scaled and shifted into those of the canvas. */
  draw(scale, shift, withEdges) {
    const { gl } = this;
    gl.viewport(0, 0, gl.drawingBufferWidth, gl.drawingBufferHeight);
    this.clear();
    gl.uniform2fv(this.scale, scale);
    gl.uniform2fv(this.shift, shift);
    gl.bindVertexArray(this.faces.array);
    gl.drawElements(gl.TRIANGLES, this.faces.count, gl.UNSIGNED_INT, 0);
    if (!withEdges) return;
    gl.bindVertexArray(this.lines.array);
    gl.drawElements(gl.LINES, this.lines.count, gl.UNSIGNED_INT, 0);
  }

  clear() {
    this.gl.clearColor(0, 0, 0, 0);
    this.gl.clear(this.gl.COLOR_BUFFER_BIT);
  }
}
