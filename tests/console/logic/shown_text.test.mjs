// Text that cannot deceive, and addresses that may become links.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NeutralPieces, neutral, oneLine, safeAddress } from "../../../gateway/console/modules/shown_text.js";

test("control and bidirectional characters are shown, not obeyed", () => {
  assert.equal(neutral("a\u202ecod.exe\u202c b\u0007"), "a�cod.exe� b�");
  assert.equal(neutral("one\r\ntwo\tthree"), "one\ntwo\tthree");
});

test("joiners work between letters and emoji, and are shown between ASCII", () => {
  assert.equal(neutral("👩‍👩‍👧 می‌خواهم"), "👩‍👩‍👧 می‌خواهم");
  assert.equal(neutral("pass\u200bword"), "pass�word");
  assert.equal(neutral("🏴󠁧󠁢󠁥󠁮󠁧󠁿"), "🏴󠁧󠁢󠁥󠁮󠁧󠁿");
  assert.equal(neutral("x\u{e0041}"), "x�");
  assert.equal(neutral("שלום\u200f!"), "שלום\u200f!");
});

test("a text in pieces is shown like the whole, wherever it is cut", () => {
  for (const whole of ["👩‍👩‍👧 ok", "pass\u200bword", "a\r\nb", "🏴󠁧󠁢󠁥󠁮󠁧󠁿.", "می‌خواهم"]) {
    for (let at = 0; at <= whole.length; at += 1) {
      const pieces = new NeutralPieces();
      const shown = pieces.take(whole.slice(0, at)) + pieces.take(whole.slice(at)) + pieces.end();
      assert.equal(shown, neutral(whole), `cut at ${at} of ${JSON.stringify(whole)}`);
    }
  }
});

test("only ordinary addresses are links", () => {
  assert.equal(safeAddress("https://example.org/a?b=c"), "https://example.org/a?b=c");
  assert.equal(safeAddress("mailto:someone@example.org"), "mailto:someone@example.org");
  const others = [
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    " javascript:alert(1)",
    "java\nscript:alert(1)",
    "data:text/html,x",
  ];
  const odd = [
    "//example.org",
    "/api/logout",
    "vbscript:x",
    "file:///etc/passwd",
    "https://bank.example@evil.example/",
    "https://a\u202eb/",
    "",
  ];
  for (const address of [...others, ...odd]) assert.equal(safeAddress(address), null, address);
});

test("a line is one line", () => assert.equal(oneLine("  a \n b\t c "), "a b c"));
