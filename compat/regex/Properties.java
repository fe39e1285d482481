import java.util.ArrayList;
import java.util.List;
import java.util.function.IntPredicate;
import java.util.regex.Pattern;

/**
 * The characters of each property that java.util.regex knows by name, one per line: the property as
 * in \p{...}, the number of its code points, and a hash of their ranges. Then the characters that
 * follow a character in the same grapheme cluster, as \X defines it.
 */
public class Properties {
    private static final String PLAIN = "Cn Lu Ll Lt Lm Lo Mn Me Mc Nd Nl No Zs Zl Zp Cc Cf Co Cs Pd Ps Pe Pc Po Sm Sc Sk So Pi Pf L M N Z C P S "
        + "LC LD L1 all ASCII Alnum Alpha Blank Cntrl Digit Graph Lower Print Punct Space Upper XDigit javaLowerCase javaUpperCase "
        + "javaAlphabetic javaIdeographic javaTitleCase javaDigit javaDefined javaLetter javaLetterOrDigit javaJavaIdentifierStart "
        + "javaJavaIdentifierPart javaUnicodeIdentifierStart javaUnicodeIdentifierPart javaIdentifierIgnorable javaSpaceChar javaWhitespace "
        + "javaISOControl javaMirrored IsAlphabetic IsAssigned IsControl IsHexDigit IsIdeographic IsJoinControl IsLetter IsLowercase "
        + "IsNoncharacterCodePoint IsTitlecase IsPunctuation IsUppercase IsWhiteSpace IsWord IsAlpha IsLower IsUpper IsSpace IsPunct "
        + "IsXDigit IsAlnum IsCntrl IsDigit IsBlank IsGraph IsPrint";
    private static final int LAST = 0x10ffff;

    public static void main(String[] args) {
        List<String> names = new ArrayList<>(List.of(PLAIN.split(" ")));
        for (Character.UnicodeScript script : Character.UnicodeScript.values()) {
            names.add("script=" + script.name());
        }
        Character.UnicodeBlock block = null;
        for (int code = 0; code <= LAST; code += 16) {
            Character.UnicodeBlock here = Character.UnicodeBlock.of(code);
            if (here != null && here != block) {
                names.add("block=" + here);
            }
            block = here;
        }
        for (String name : names) {
            // A pattern of one property is a predicate of code points, like a class of several.
            Pattern pattern = Pattern.compile("\\p{" + name + "}");
            line(name, LAST, code -> pattern.matcher(Character.toString(code)).matches());
        }
        line("upper", LAST, code -> Character.toUpperCase(code) != code);
        Pattern cluster = Pattern.compile("\\X");
        String[][] around = {{"a", ""}, {"", "a"}, {"\u1100", ""}, {"", "\u11a8"}, {"\u2764\u200d", ""}, {"", "\u200d\u2764"}};
        for (String[] parts : around) {
            line("cluster " + hex(parts[0]) + "," + hex(parts[1]), LAST, code ->
                !(code >= 0xd800 && code < 0xe000) && cluster.matcher(parts[0] + Character.toString(code) + parts[1]).matches());
        }
    }

    private static String hex(String text) {
        StringBuilder out = new StringBuilder();
        text.codePoints().forEach(code -> out.append(out.length() == 0 ? "" : "+").append(Integer.toHexString(code)));
        return out.toString();
    }

    private static void line(String name, int last, IntPredicate has) {
        long hash = 0xcbf29ce484222325L;
        int count = 0;
        boolean before = false;
        for (int code = 0; code <= last + 1; code++) {
            boolean here = code <= last && has.test(code);
            count += here ? 1 : 0;
            if (here != before) {
                hash = (hash ^ code) * 0x100000001b3L;
            }
            before = here;
        }
        System.out.println(name + "\t" + count + "\t" + Long.toHexString(hash));
    }
}
