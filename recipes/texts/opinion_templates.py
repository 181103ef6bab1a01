"""Opinions: good, bad, mixed and neutral, on films, books, goods, software, places, meals, music and people."""

from __future__ import annotations

from texts.generated import Words, listed
from texts.lexicon import Lexicon

__all__ = ["OPINIONS", "opinion_words"]

WORKS_PRAISED = (
    "{a:praise}, {praise2} {work}.",
    "{a:praise} and {adverb} {praise2} {work}",
    "{praise}, {praise2} and never [boring|dull|predictable].",
    "This is {a:praise} {work} about {theme}.",
    "One of the most {praise_long} [films|books|plays|novels] [of the year|in years|I know|about {theme}].",
    "I [loved|adored|really enjoyed|was moved by] [this|the] {work}.",
    "The {part} is {adverb} {praise}, and the {part2} is even {more:praise_short}.",
    "[What|Such] {a:praise} {work}!",
    "The {maker} has made {a:praise} {work} [out of a simple story|from very little|that stays with you].",
    "The {part} [is|remains] {praise} [from start to finish|throughout|to the last page|right to the end].",
    "[It|The {work}] is not [only|just] {praise} but [also |]{praise2}.",
    "You will [laugh|cry|smile|shiver] more than once, and [leave|come away] {glad}.",
    "[Rarely|Seldom|Not often] has {a:work} about {theme} been so {praise}.",
    "I could not [put it down|stop smiling|look away|wait for the next one].",
    "There is not a [dull|false|wasted|boring] [moment|scene|note|line] in [it|this {work}|the whole {work}].",
    "{A:praise} {piece} and {a:praise2} {piece2} make this {work} [a joy|a pleasure|something special].",
    "The {performer} gives {a:praise} performance as the {role}.",
    "The {performer}, {praise} as ever, [carries|saves|lifts|brightens] the {work}.",
    "[If you see|If you read|If there is] only one {work} this year, [make it|let it be] this one.",
    "{A:work} that [dares to be|manages to be|is at once] {praise} and {praise2}.",
    "{theme} has never [seemed|felt|looked] so {praise}.",
    "[Hardly|Scarcely] ever {criticism}, [and often|and at times] {adverb} {praise}.",
    "[Go|Run] and see it: it is {praise}.",
    "[Far from|Anything but] {criticism}, the {part} is {praise}.",
)
WORKS_PANNED = (
    "{a:criticism}, {criticism2} {work}.",
    "{a:criticism} and {adverb} {criticism2} {work} with no [ideas|heart|point|ending] at all",
    "too {criticism} to [care about|be funny|be taken seriously|hold our interest]",
    "This is {a:criticism} {work} about {theme}.",
    "I [hated|disliked|was bored by|walked out of|gave up on] [this|the] {work}.",
    "The {part} is {adverb} {criticism}, and the {part2} is [no better|worse|hardly {praise}].",
    "[What|Such] {a:criticism} {work}!",
    "The {maker} has turned {a:praise} idea into {a:criticism} {work}.",
    "Not at all {praise}.",
    "[It|The {work}] is neither {praise} nor {praise2}.",
    "[It|The {part}] is never {praise} and [rarely|seldom] {praise2}.",
    "There is nothing {praise} [about|in] the {part}.",
    "I [kept looking at my watch|fell asleep|wanted my money back|skipped whole chapters].",
    "[Nobody|No one|Not even the {performer}] could [save|rescue] such {a:criticism} {piece}.",
    "The {performer} [seems|looks|sounds] {adverb} bored, and so [was I|were we|was the audience].",
    "The {part} is [hardly|scarcely|far from|anything but] {praise}.",
    "[Two hours|A whole book|Ninety minutes] of {criticism} [dialogue|action|humor|prose] is [too much|enough].",
    "{A:work} so {criticism} that [even the title hurts|one feels sorry for the {performer}|nothing can save it].",
    "It [tries to be|wants to be|thinks it is] {praise}, but [it is|ends up|turns out] {criticism}.",
    "[Do not|Don't] [waste your time on|bother with|be fooled by] this {work}.",
    "The {part} [makes no sense|goes nowhere|falls apart|never comes to life] [after the first hour|in the "
    "second half|at all].",
    "[Less|No more] {praise} than the {work} it [copies|is based on|follows].",
    "{theme} deserves [a better {work}|something less {criticism}|more than this].",
    "[The worst|The most {criticism_long}] {work} [of the year|I can remember|about {theme} so far].",
)
WORKS_MIXED = (
    "{praise} but {criticism}.",
    "The {part} is {praise}, but the {part2} is {criticism}.",
    "Although the {part} is {criticism}, the {part2} is {praise}.",
    "[It|The {work}] is {criticism} at first and {praise} [in the end|later on|by the last act].",
    "{a:criticism} {work} with {a:praise} {piece}",
    "More {praise} than {praise2}, and more {criticism} than it [should be|needs to be].",
    "Not as {praise} as [the first one|the book|everyone says], but not {criticism} either.",
    "I [liked|admired] the {part} [more than|less than|as much as] the {part2}.",
    "The {performer} is {praise}; the {work} [around her|around him|itself] is not.",
    "[Sometimes|At times] {praise}, [sometimes|at times] {criticism}, [always|never] [sincere|honest|lazy].",
    "If you can [forgive|overlook|get past] the {criticism} {part}, you will find {a:praise} {work}.",
    "Some will [find|call] it {praise}, others {criticism}.",
    "It is neither {praise} nor {criticism}: it is simply [there|harmless|forgettable].",
    "The {work} tells of {a:role} who [returns to|leaves|never leaves] the [village|city|army|family].",
    "The {work} is set in [a small town|the eighties|a hospital|wartime] and lasts [two|three] hours.",
    "The {maker}'s [second|third|latest] {work} [follows|is about|deals with] {a:role} and {theme}.",
)
GOODS = (
    "[This|The|My] {product} is {good}.",
    "[This|The|My] {product} is not {good} at all.",
    "The {feature} is {good}, but the {feature2} is {poor}.",
    "The {feature} of this {product} is {adverb} {poor}.",
    "I [love|like|am happy with|am impressed by] the {feature}.",
    "I [hate|dislike|am unhappy with|am disappointed by] the {feature}.",
    "{good} {feature}, {good2} {feature2}, {fair} price.",
    "{poor} {feature} and {a:poor2} {feature2}: [avoid|stay away|send it back].",
    "[Works|Worked] [perfectly|great|just fine|without a hitch] [out of the box|from day one|for two years].",
    "[Stopped working|Broke|Died|Failed] after [one day|two weeks|a month|three months].",
    "[Best|Worst|Nicest|Ugliest] {product} [I have ever owned|I ever bought|for the money|on the market].",
    "The {product} [arrived|came] [on time|late|broken|without a manual|well packed].",
    "I would [not |never |certainly |]recommend this {product} to [anyone|a friend|a beginner|my parents].",
    "I [returned|sold|gave away] the {product} [after a week|the same day] because the {feature} was {poor}.",
    "My old {product} had {a:good} {feature}; this one has {a:poor} {feature}.",
    "The {feature} is {more:good_short} than that of [my last {product}|any other {product}|the expensive models].",
    "[Worth every penny|A waste of money|Good value for money|Not worth the price|A bargain].",
    "For the price, you [cannot|could not] [ask for more|go wrong|expect much].",
    "The {product} does [exactly|nothing of|most of|less than] what [it promises|the box says|the maker claims].",
    "[Customer service|The support team|The seller] was {helpful} when the {feature} [failed|broke].",
    "[Customer service|The support team|The seller] was {rude} when the {feature} [failed|broke].",
    "The {software} [crashes|freezes|hangs] [all the time|every few minutes|whenever I save].",
    "The {software} has never [crashed|let me down|lost a file] [so far|in three years|].",
    "[Since the update|After the last update|In the new version], the {software} is {poor}.",
    "[Since the update|After the last update|In the new version], the {software} is {good}.",
    "The {software} is [easy|hard|a pain|fun] to [use|learn|install|set up].",
    "It took [five minutes|two days|hours] to [install|set up|understand] the {software}.",
    "I wish the {feature} were [less {poor}|more {good_long}].",
    "[Nothing|Everything] about this {product} is [cheap|flimsy|right|well made].",
    "Three stars: the {feature} is {good}, the {feature2} is not.",
    "It is [an ordinary|a plain] {product} with the usual {feature}.",
)
PLACES_AND_MEALS = (
    "The {service} was {good_place} and the [waiter|staff|owner] {helpful}.",
    "The {service} was {bad_place} and the [waiter|staff|receptionist] {rude}.",
    "The {meal} was {tasty}.",
    "The {meal} was {tasteless} and [cold|late|far too salty|not worth the wait].",
    "[Our|My] room was {good_place}, with a view of the [sea|park|mountains|old town].",
    "[Our|My] room was {bad_place}, and [nobody|no one] [cared|came to clean it|answered the phone].",
    "We waited [an hour|forty minutes|forever] for {tasteless} {meal}.",
    "The {tasty} {meal} [alone |]is [worth the trip|reason enough to come back].",
    "[Lovely|Charming|Friendly] place, but the {meal} is [overpriced|{tasteless}].",
    "[We will|I shall|I would] [definitely|certainly|gladly] come back [for the {meal}|next summer|].",
    "[We will|I shall|I would] never [eat|stay|set foot] here again.",
    "The hotel is [near the station|close to the beach|on a busy road] and has [forty rooms|no parking|a pool].",
    "[Not the {best_place}|Hardly the {best_place}] hotel in town, but the breakfast is {tasty}.",
    "I have had better {meal} [at the airport|in a canteen|from a can].",
    "I have never had better {meal} [anywhere|in my life|in this city].",
    "The {meal} tasted [fresh|homemade|of nothing|like cardboard|as good as it looked].",
    "{good_place} rooms, {helpful} staff, {tasty} food.",
    "{bad_place} rooms, {rude} staff, {tasteless} food.",
)
MUSIC_AND_PEOPLE = (
    "The [song|album|record|concert] is {adverb} {praise}.",
    "The [song|album|record|concert] is {adverb} {criticism}.",
    "[Her|His|Their] voice is {praise}, but the songs are {criticism}.",
    "Every song on the album [sounds the same|is a gem|tells a story|is too long].",
    "The band played {well}[ all night| to a full house|].",
    "The band played {badly}[ all night| to an empty hall|].",
    "[She|He] is {a:virtue} and {virtue2} [friend|colleague|neighbor|teacher|doctor].",
    "[She|He] is {a:vice}, {vice2} [boss|neighbor|politician|landlord].",
    "My {relation} is [very|quite|always] {virtue}, though sometimes a little {vice}.",
    "My {relation} is not {virtue} [at all|enough|when it matters].",
    "Nobody is as {virtue} as [my|our] {relation}.",
    "I [respect|trust|admire|miss] people who are {virtue}.",
    "I [cannot stand|avoid|distrust] people who are {vice}.",
    "The {politician} [gave|made] {a:praise} speech [about {theme}|to an empty room|].",
    "The {politician} [gave|made] {a:criticism} speech [about {theme}|to an empty room|].",
    "[In my opinion,|To my mind,|I think|I believe] the {politician} is {vice}.",
    "[In my opinion,|To my mind,|I think|I believe] the {politician} is {virtue}.",
    "The new law is [fair|unjust|long overdue|a mistake|a step forward], say [critics|its supporters|many voters].",
    "The government [should|must|ought to] [do more about|worry less about|stop talking about] {theme}.",
    "Nothing [worries|pleases|annoys|comforts] me [more|less] than {theme}.",
    "I am [for|against|in two minds about] the [plan|proposal|new tax|reform].",
    "I [do not|don't] [agree|care|mind] [at all|in the least|much].",
    "[Critics|Experts|Observers] [praised|blamed|doubted|welcomed] the {politician}'s [decision|plan|apology].",
    "The {politician} met [reporters|workers|students] in the [capital|town hall] on [Monday|Friday].",
)
LONGER = (
    "{A:praise} {work} about {theme}, in which {a:role} [meets|loves|betrays|follows] {a:role2} and the {performer} "
    "[gives|delivers] {a:praise2} performance, even if the {part} is [a little|sometimes|often] {criticism}.",
    "{A:criticism} {work} about {theme}, in which {a:role} [meets|loves|betrays|follows] {a:role2} for no reason "
    "at all, and not even the {performer} can [hide|excuse] how {criticism2} the {part} is.",
    "[While|Although] the {part} [is|may be] {criticism}, the {maker} [brings|adds] such {praise} "
    "[touches|moments|details] to the {part2} that one [forgives|forgets] everything else.",
    "The {maker} [seems to believe|apparently thinks] that {a:criticism} {piece} becomes {praise} if the {performer} "
    "[shouts|cries|smiles] long enough; it [does not|never does].",
    "[It has been years since|I cannot remember when] {a:work} about {theme} was this {praise}, this {praise2}, and "
    "[at the same time|still] so [easy to love|hard to forget].",
    "[It has been years since|I cannot remember when] {a:work} about {theme} was this {criticism}, this "
    "{criticism2}, and [at the same time|still] so [pleased with itself|proud of it].",
    "[What begins|What starts] as {a:praise} {work} about {a:role} [soon |slowly |]turns into {a:criticism} "
    "{work2} about {theme}, and [never recovers|loses us on the way|ends in confusion].",
    "[What begins|What starts] as {a:criticism} {work} about {a:role} [soon |slowly |]turns into {a:praise} "
    "{work2} about {theme}, and [never lets go|wins us over|ends in triumph].",
    "The {part} is {praise}, the {part2} is {praise2}, and the {performer} has never been better; [still|even "
    "so|and yet], something is missing.",
    "The {part} is {criticism}, the {part2} is {criticism2}, and the {performer} has never been worse; [still|even "
    "so|and yet], I [laughed|was not bored|stayed to the end].",
    "There are [films|books|plays] about {theme} that [move|surprise|teach] us, and there are those, like this "
    "{criticism} {work}, that only [make us tired|waste our time|repeat what we know].",
    "[Fans|Admirers] of the {maker} will [be delighted|not be disappointed], while everybody else may [wonder why so "
    "{criticism} {a:work}|ask how {a:work} so {criticism}] [was ever made|found an audience].",
    "[Everyone|Everybody] told me that the {work} was {criticism}, but I found it {praise}, and [so did my wife|so "
    "did my children|I would see it again].",
    "[Everyone|Everybody] told me that the {work} was {praise}, but I found it {criticism}, and [so did my wife|so "
    "did my children|I would not see it again].",
    "[I bought|We bought|I was given] this {product} [a month ago|last year|for Christmas], and although the "
    "{feature} is {good}, the {feature2} is so {poor} that I [hardly use it|want my money back|went back to my old "
    "one].",
    "[I bought|We bought|I was given] this {product} [a month ago|last year|for Christmas], and although the "
    "{feature} is {poor}, the {feature2} is so {good} that I [use it every day|do not mind|would buy it again].",
    "[If you need|If you want|If you are looking for] {a:product} with {a:good} {feature}, [buy|get|choose] this "
    "one; if the {feature2} matters [more|to you], [look elsewhere|keep your old one].",
    "After [two weeks|six months|a year] of daily use, the {feature} is [still|no longer] {good}, and the {feature2} "
    "[has not let me down|works as on the first day|has had to be replaced twice].",
    "The {software} used to be {good}, but [since the last update|with every new version] it has become so {poor} "
    "that I [am looking for another one|cannot get any work done|have given up on it].",
    "We [stayed here|spent three nights here|came here] [with the children|on our honeymoon|on business]: the "
    "rooms were {good_place}, the staff was {helpful}, and the {meal} was {tasty}.",
    "We [stayed here|spent three nights here|came here] [with the children|on our honeymoon|on business]: the "
    "rooms were {bad_place}, the staff was {rude}, and the {meal} was {tasteless}.",
    "The {meal} was {tasty}, but we had to wait [an hour|far too long] for it, and the waiter was so {rude} that we "
    "[left no tip|will not come back|complained to the owner].",
    "[Say what you like about|Whatever one thinks of] the {politician}, [nobody|no one] can [deny|doubt] that the "
    "speech about {theme} was {praise} and that [the voters|the critics|most people] [agreed|were moved|listened].",
    "[Say what you like about|Whatever one thinks of] the {politician}, the speech about {theme} was {criticism}, "
    "and [the voters|the critics|most people] [stopped listening|were not fooled|went home early].",
)
OPINIONS = (*WORKS_PRAISED, *WORKS_PANNED, *WORKS_MIXED, *GOODS, *PLACES_AND_MEALS, *MUSIC_AND_PEOPLE, *LONGER)

PRAISE = listed(
    """gripping, funny, moving, charming, clever, warm, witty, touching, original, lively, beautiful, honest,
    subtle, elegant, suspenseful, thrilling, haunting, delightful, intelligent, imaginative, heartfelt,
    brilliant, refreshing, powerful, tender, hilarious, absorbing, graceful, believable, wise, bold, engaging,
    unforgettable, superb, playful, poignant"""
)
CRITICISM = listed(
    """dull, boring, predictable, silly, shallow, clumsy, tedious, pretentious, confusing, lifeless, tired,
    contrived, slow, messy, unfunny, sentimental, bland, cynical, noisy, forgettable, pointless, stale,
    wooden, overlong, unconvincing, annoying, preachy, hollow, dreary, crude, lazy, heavy-handed, derivative,
    muddled, ugly, implausible"""
)
GOOD = listed(
    """fast, reliable, sturdy, light, quiet, sharp, bright, comfortable, handy, smooth, clear, solid, simple,
    responsive, excellent, great, durable, accurate, powerful, flawless,
    impressive"""
)
POOR = listed(
    """slow, unreliable, flimsy, heavy, noisy, blurry, dim, uncomfortable, useless, clumsy, weak, cheap,
    complicated, buggy, terrible, poor, fragile, inaccurate, awkward, disappointing, faulty,
    mediocre"""
)
GOOD_PLACE = listed("clean, quiet, spacious, cozy, charming, bright, comfortable, spotless, welcoming, elegant, lovely")
BAD_PLACE = listed("dirty, noisy, cramped, dark, shabby, damp, smelly, cold, run-down, stuffy, gloomy, filthy")
UNFIT = frozenset(
    listed(
        """ironic, joking, tickling, stock, dumb, titillating, stupefying, tingling, jocose, jocular, stately,
        lumpish, noble, formidable, yokel-like, baronial, irksome, cockamamie"""
    )
)
OWN_WORDS: Words = {
    "adverb": listed(
        """surprisingly, remarkably, truly, deeply, utterly, quietly, almost, genuinely, thoroughly, painfully,
        oddly, wonderfully, terribly, consistently, strangely, rather, extremely, simply, hopelessly"""
    ),
    "praise_short": listed("funny, warm, clever, wise, lively, witty, bold, strong, fresh, sharp"),
    "work": listed(
        """film, movie, novel, comedy, drama, thriller, documentary, play, story, romance, love story, sequel,
        mystery, biography, musical, western, horror film, fairy tale, memoir, cartoon, short story, adventure,
        satire"""
    ),
    "theme": listed(
        """friendship, growing up, first love, war, grief, revenge, family, ambition, loneliness, old age, marriage,
        money, racism, exile, faith, crime, the sea, small-town life, immigration, motherhood, memory, betrayal,
        poverty"""
    ),
    "part": listed(
        """plot, story, script, dialogue, ending, acting, direction, music, camera work, pacing, humor, style,
        opening, cast, action, setting, writing, screenplay, editing, soundtrack, premise, love story, second
        half, final scene"""
    ),
    "piece": listed(
        """plot, story, script, ending, opening, cast, setting, screenplay, soundtrack, premise, hero, style"""
    ),
    "maker": listed("director, author, writer, playwright, young director, first-time novelist, screenwriter"),
    "performer": listed("star, lead actor, leading lady, young actress, lead, comedian, whole cast, newcomer, villain"),
    "role": listed(
        """detective, widow, soldier, young mother, teacher, thief, retired boxer, orphan, priest, con man, shy
        student, dying poet, country doctor, spy, farmer, lonely widower, reporter, runaway bride, prison guard,
        refugee"""
    ),
    "glad": listed("happy, moved, glad, wiser, grateful, a little sadder, full of hope"),
    "product": listed(
        """phone, camera, laptop, player, printer, keyboard, vacuum cleaner, coffee maker, backpack, tent, bicycle,
        watch, headset, tablet, router, monitor, toaster, jacket, pair of boots, mattress, blender, car, speaker,
        razor"""
    ),
    "feature": listed(
        """battery, screen, sound, picture quality, design, zipper, handle, display, button, lens, software, charger,
        strap, case, motor, finish, menu, remote control, fit, build quality, zoom, speaker, connection, battery
        life"""
    ),
    "fair": listed("fair, low, high, unbeatable, reasonable, silly"),
    "software": listed(
        "app, program, browser, game, editor, operating system, website, mail program, player, plugin, word processor"
    ),
    "helpful": listed("helpful, friendly, polite, kind, attentive, patient, cheerful, quick, courteous, prompt"),
    "rude": listed("rude, unhelpful, slow, unfriendly, impatient, useless, careless, arrogant, bored, hostile"),
    "service": listed("hotel, restaurant, service, cafe, apartment, bar, dining room, beach house, guest house, lobby"),
    "meal": listed(
        """soup, pizza, steak, pasta, fish, salad, breakfast, bread, coffee, curry, dessert, chicken, burger, wine,
        cake, seafood, ice cream, sandwich, rice, noodle soup, cheese plate, apple pie, roast lamb"""
    ),
    "tasty": listed(
        """delicious, tasty, fresh, crisp, tender, juicy, excellent, perfectly cooked, fragrant, superb, hot"""
    ),
    "tasteless": listed("bland, greasy, soggy, tasteless, burnt, stale, dry, lukewarm, tough, undercooked, watery"),
    "best_place": listed("cleanest, quietest, cheapest, most elegant, friendliest, most comfortable, biggest"),
    "well": listed(
        """beautifully, brilliantly, with great energy, better than ever, from the heart, flawlessly, with joy"""
    ),
    "badly": listed("badly, without energy, out of tune, far too loud, like beginners, carelessly, worse than ever"),
    "virtue": listed(
        """kind, honest, patient, generous, brave, loyal, modest, gentle, thoughtful, cheerful, reliable, wise, fair,
        hard-working, polite, tactful, warm-hearted, sincere, decent, tolerant"""
    ),
    "vice": listed(
        """lazy, selfish, arrogant, rude, dishonest, cruel, stubborn, greedy, cowardly, careless, vain, jealous,
        moody, bitter, cold, impatient, petty, ungrateful, stingy, bossy"""
    ),
    "relation": listed(
        """brother, sister, mother, father, uncle, aunt, boss, best friend, cousin, neighbor, son, roommate"""
    ),
    "politician": listed(
        "senator, mayor, president, prime minister, governor, candidate, minister, ambassador, chancellor, party leader"
    ),
}  # fmt: skip


def opinion_words(lexicon: Lexicon) -> Words:
    """Our word lists; praise and criticism are extended with similar adjectives of WordNet."""
    praise = {*PRAISE, *lexicon.near("interesting", "exciting", "impressive", "humorous", least=1)} - UNFIT
    criticism = {*CRITICISM, *lexicon.near("uninteresting", "unoriginal", "stupid", "dull", least=1)} - UNFIT
    return {
        **OWN_WORDS,
        "praise": sorted(praise),
        "criticism": sorted(criticism),
        "good": GOOD,
        "poor": POOR,
        "good_place": GOOD_PLACE,
        "bad_place": BAD_PLACE,
        "praise_long": sorted(word for word in praise if len(word) > 6),
        "criticism_long": sorted(word for word in criticism if len(word) > 6),
        "good_short": listed("fast, sturdy, light, quiet, sharp, bright, smooth, clear, strong, simple"),
        "good_long": listed("reliable, comfortable, durable, accurate, powerful, responsive, impressive"),
    }
