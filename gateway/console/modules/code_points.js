// Positions in a text. The service counts characters as Python does, by code points; strings here count UTF-16 units, of
// which an emoji has two.

const SURROGATES = /[\ud800-\udfff]/;

/** How many code points a text has. */
export function countPoints(text) {
  if (!SURROGATES.test(text)) return text.length;
  let points = 0;
  for (const _ of text) points += 1;
  return points;
}

/** The index in the string behind so many code points; its length when it has fewer. */
export function indexOfPoint(text, points) {
  if (!SURROGATES.test(text)) return Math.min(points, text.length);
  let index = 0;
  for (let left = points; left > 0 && index < text.length; left -= 1) {
    index += text.codePointAt(index) > 0xffff ? 2 : 1;
  }
  return index;
}
