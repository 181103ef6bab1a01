"""Questions of every kind: persons, places, dates, numbers, definitions, abbreviations, manners, reasons, yes or no."""

from __future__ import annotations

from texts.generated import Words, listed
from texts.lexicon import Lexicon

__all__ = ["QUESTIONS", "question_words"]

PERSONS = (
    "Who was {person}?",
    "Who [invented|designed|built|patented] the first {machine}?",
    "Who [first |]discovered {element}?",
    "Who [wrote|edited|translated] the [first|best known] [book|essay|novel|poem] about {topic}?",
    "Who [won|lost] the {battle}?",
    "Who was the [first|second|last|youngest|oldest|only] [king|queen|president|prime minister|ruler] of {country}?",
    "Who was [king|queen|president|in power] when {the_war} [began|broke out|ended]?",
    "Who is the [mayor|patron saint|most famous son] of {city}?",
    "Which {job} [won|was awarded|refused] the Nobel Prize in {year}?",
    "What {job} [lived|worked|died|was born] in {city} in {year}?",
    "Name the {job} who [wrote|taught|lectured] about {topic} in the {century} century.",
    "Whose [portrait|statue|face|signature] is on the {currency} of {country}?",
    "Whose [theory|idea|discovery] [led to|made possible|inspired] the {machine}?",
    "Whom did {person} [marry|succeed|admire|defeat|teach|work for]?",
    "Who is the author of the [play|novel|song|poem] about {a:job} and {a:animal}?",
    "Which [group|tribe|family|team] [settled|ruled|founded|left] {city}?",
    "What [company|firm|maker] [sells|produces|makes|introduced] the [most|best|cheapest] {s:tool}?",
    "What was {person}'s [real name|nickname|middle name|profession|last work]?",
    "What is the [name|title] of the person who [repairs|collects|sells|studies] {s:collectable}?",
    "Who [played|sang|conducted|composed] the [music|part of the {job}] in the film about {city}?",
)
PLACES = (
    "Where is {city}?",
    "Where was {person} [born|buried|educated|last seen]?",
    "Where did {person} [live|die|grow up|go to school|spend the war]?",
    "Where does {drink} come from?",
    "Where do {s:animal} [live|sleep|spend the winter|find food]?",
    "Where [can|could|should] I [buy|find|rent|repair] {a:thing} [in {city}|near here|on a Sunday|]?",
    "Where in {country} [is|would you find] the [highest mountain|oldest bridge|largest airport|driest place]?",
    "What is the capital of {country}?",
    "What [country|continent|state] is {city} in?",
    "Which [country|countries|states|sea] does the {river} [flow through|flow into|start in]?",
    "What [river|road|railroad|bridge] [runs through|leads to] {city}?",
    "What [mountain|lake|island|desert|city] is the [largest|second largest|most visited|smallest] in {country}?",
    "In [what|which] [city|country|town|state] was the {battle} [fought|won|lost]?",
    "From [what|which] [country|part of the world] [does|did] the {instrument} come?",
    "What [city|town|country] has the [most|oldest|tallest] {s:building}?",
    "At which [museum|university|hospital|theater] did {person} work?",
    "What [body of water|strait|mountain range] separates {country} from {country2}?",
    "Near what [city|river|border|volcano] is {mountain}?",
    "Which [planet|moon|star] is the [largest|hottest|nearest to the sun|farthest from us]?",
    "On which [continent|island|coast] can one see {s:animal} in the wild?",
)
DATES = (
    "When was {person} [born|elected|arrested|buried]?",
    "When did {the_war} [begin|end|start|break out]?",
    "When was the {building} in {city} [built|opened|closed|destroyed]?",
    "When did {country} [become independent|join the United Nations|adopt its flag|get its first railroad]?",
    "What year did {person} [die|retire|leave {city}|publish a first book|visit {country}]?",
    "What year was the [first|last] {machine} [sold|made|patented|shown in {city}]?",
    "In [what|which] [year|month|decade|century] was {element} discovered?",
    "On what [day|date] is [Easter|Thanksgiving|the national holiday of {country}|Labor Day] this year?",
    "[What time|When] does the [{building} open|train to {city} leave|sun set in {city}|game start]?",
    "How long ago did the [last {animal} die out|first people reach {country}|{battle} take place]?",
    "What is the best [month|season|time of year] to [visit {country}|plant {s:plant}|see {s:animal}]?",
    "Since when [have people|has man] [eaten {s:fruit}|kept {s:pet}|worked with {metal}|played {sport}]?",
)
NUMBERS = (
    "How many [people|families|tourists|students] [live in|visit|leave] {city} [each year|every summer|]?",
    "How many {s:unit} are [there in|in] {a:unit2}?",
    "How many [legs|eyes|teeth|bones|young] does {a:animal} have?",
    "How many [strings|keys|holes|parts] does {a:instrument} have?",
    "How many [states|provinces|islands|official languages|lakes] are there in {country}?",
    "How many [players|points|referees|minutes] are there in a game of {sport}?",
    "How many [books|letters|symphonies] did {person} [write|leave behind|destroy]?",
    "How many calories are [there|] in {a:fruit}?",
    "How much does {a:thing} [cost|weigh] [in {country}|today|on average|]?",
    "How much [water|sugar|fat] is in {drink}?",
    "How much did {a:thing} cost in {year}?",
    "How far is it from {city} to {city2}?",
    "How far can {a:animal} [run|swim|see|travel] [in a day|without food|]?",
    "How long is the {river}?",
    "How long does it take to [drive from {city} to {city2}|learn the {instrument}|grow {a:plant}|boil {a:food}]?",
    "How long do {s:animal} live?",
    "How old was {person} [when {the_war} began|in {year}|at the end|]?",
    "How old is the {building} in {city}?",
    "How tall is [{mountain}|the tallest {tree}|the average {job}]?",
    "How [high|deep|wide|cold|warm] is {lake}?",
    "How [fast|heavy|big|loud|dangerous] is {a:animal}?",
    "How [hot|cold|dry|rainy] does it get in {city} [in winter|in July|at night|]?",
    "How often [should one|do you|must I] [clean|repair|replace|check|charge] {a:thing}?",
    "What is the [population|area|birth rate|average income|inflation rate] of {country}?",
    "What is the [distance|time difference|air fare] between {city} and {city2}?",
    "What is the [boiling point|melting point|density|atomic weight|price] of {element}?",
    "What percentage of [the people of {country}|all {s:animal}|the ocean|the world's {metal}] was lost by {year}?",
    "What [speed|height|weight|temperature] can {a:machine} [reach|stand]?",
    "What is the [telephone number|zip code|address|area code] of the {building} in {city}?",
    "What was the [score|final score|attendance] of the {sport} final in {year}?",
)
THINGS = (
    "What is {a:term}?",
    "What are {s:animal}?",
    "What [is|was] {a:machine} used for?",
    "What does {a:job} do [all day|in winter|]?",
    "What does the word {term} mean?",
    "What is the [meaning|origin|plural|opposite] of the word {term}?",
    "What does {acronym} [stand for|mean]?",
    "What is the [full form|abbreviation|short form] of {acronym}?",
    "What is {acronym}[| short for]?",
    "[Define|Explain|Describe] the [term|word|idea] {term}.",
    "What [color|kind of animal] is {a:animal}?",
    "What do {s:animal} [eat|fear|look like|do in winter]?",
    "What is the [main ingredient of|best way to serve|traditional name for|secret of a good] {dish}?",
    "What [fruit|vegetable|plant|spice] [contains the most {vitamin}|goes into {dish}|grows in {country}]?",
    "What [language|religion|currency|kind of government] do [they|people] [have|use] in {country}?",
    "What [instrument|weapon|tool|vehicle] did [the soldiers|the people|{s:job}] of the {century} century use?",
    "What [disease|illness|condition] do {s:insect} [carry|spread|cause]?",
    "What are the [symptoms|causes|first signs|side effects|risks] of {disease}?",
    "What [is|was] {person} [best known|famous|remembered] for?",
    "What did {person} [discover|invent|write|paint|say about {topic}]?",
    "What happened in {city} in {year}?",
    "What [caused|ended|followed|started] {the_war}?",
    "What [sport|game] [is played with|needs] {a:ball}?",
    "What is the [difference|connection|similarity] between {a:animal} and {a:animal2}?",
    "What is the [chemical symbol|chemical formula|common name|use] of {element}?",
    "What is the [name|term|word] for [the fear|the study|a collector] of {s:animal}?",
    "What do you call [a group of {s:animal}|a male {animal}|someone who makes {s:tool}|a home for {s:pet}]?",
    "What kind of {thing} [is best for|would suit|do I need for] [a beginner|{a:job}|a small flat|a trip to "
    "{country}]?",
    "Which tree [grows fastest|has the hardest wood|keeps its leaves]?",
    "Which is [better|older|cheaper|heavier], {a:thing} or {a:thing2}?",
    "Which of these [animals|words] does not belong with the others: {animal}, {animal2} or {animal3}?",
    "What {job} would [need|carry|wear] {a:garment}?",
    "Name {a:animal_class} that [lives in {country}|cannot swim|sleeps in the day|is in danger].",
    "Name [three|five|two] [cities|rivers|products|writers] of {country}.",
    "Tell me [about|something about|more about|everything you know about] {person}.",
    "Tell me what {a:machine} is [for|made of|worth].",
    "List the [parts|uses|makers|types] of {a:machine}.",
    "What [song|film|book|play] is about {a:job} [who|that] [falls in love with|hates|kills|saves] {a:job2}?",
)
MANNERS = (
    "How do you [make|cook|serve|pronounce|freeze] {dish}?",
    "How does {a:machine} work?",
    "How do {s:animal} [see at night|find their way|raise their young|keep warm]?",
    "How did {person} [die|become famous|lose the election|make a fortune]?",
    "How did {city} get its name?",
    "How [can|do|should] I [get rid of|catch|keep away] {s:insect}[ without poison|]?",
    "How [can|do|should] I [repair|clean|sell|choose|use] {a:thing}[ at home| myself|]?",
    "How is {drink} made?",
    "How do I get from {city} to {city2} [by train|by car|without flying|as cheaply as possible]?",
    "How do you say {term} in [French|Spanish|German|Italian|Latin|Japanese]?",
    "How would you describe {emotion} to a child?",
    "How is {disease} [treated|spread|diagnosed|prevented]?",
    "Why do {s:animal} [sleep so much|have tails|live in groups|fight]?",
    "Why did {person} [leave|move to|never return to|hate] {city}?",
    "Why did [{country} enter|{country} stay out of|so many people die in] {the_war}?",
    "Why is {element} [so expensive|used in medicine|dangerous|so rare]?",
    "Why is {city} [so expensive|called that|famous|worth a visit]?",
    "Why does [my|the|this] {thing} [make that noise|smell|keep breaking|cost so much]?",
    "Why [can't|don't|shouldn't] {s:pet} eat {s:fruit}?",
    "Why do people [feel {emotion}|collect {s:collectable}|play {sport}|move to {country}]?",
    "What makes {a:machine} [stop|work|so loud]?",
    "What is the reason for {disease}?",
)
YES_NO = (
    "Is {a:animal} {a:animal_class}?",
    "Is {city} [bigger than|older than|far from|north of] {city2}?",
    "Is it [possible|safe|legal] to [keep {a:animal}|drink {drink} every day|swim in {lake}|carry {a:tool} on "
    "a plane]?",
    "Are {s:animal} [dangerous|rare|good pets|intelligent|protected]?",
    "Do {s:animal} [eat|hunt|fear|live with] {s:animal2}?",
    "Does {a:fruit} contain [{vitamin}|sugar|iron]?",
    "Does [anyone|anybody] know how to [repair|open|use|move] {a:thing}?",
    "Did {person} ever [meet|write about|quarrel with|hear of] {person2}?",
    "Was {person} [a good {job}|married|from {country}|ever in {city}]?",
    "Can {s:animal} [swim|climb|see in the dark|learn tricks]?",
    "Can you [recommend|find me|show me|tell me about] a [good|cheap|quiet] {building} in {city}?",
    "Could you [please |]tell me [where|how far away] the [next|nearest|best] {building} is?",
    "Have you ever [eaten {dish}|been to {city}|played the {instrument}|seen {a:animal}]?",
    "Should I [buy|sell|rent|repair] {a:thing} [now|this year|or wait|]?",
    "Will there be [rain|snow|a storm|sunshine] in {city} [tomorrow|on Sunday|next week]?",
    "do i need a visa for {country}",
    "what is the weather like in {city} [today|tomorrow|this weekend]",
    "how do i clean {a:thing}",
    "when does the {building} [open|close] on [sunday|monday|friday]",
    "best way to cook {dish}",
    "I would like to know [who|what kind of {job}] [built|owns|runs] the {building} in {city}.",
    "I wonder how {s:animal} [find food in winter|stay so thin|learn to hunt].",
    "[Suppose|Imagine] you had to choose between {a:thing} and {a:thing2}; which would you [take|give away], and why?",
    "I am [looking for|writing about|doing homework on] {person}; [where|when|in which city] was [he or she|this "
    "person] [born|buried|last seen]?",
    "[Excuse me,|Hello,|Sorry,] [do you happen to know|can you tell me|does anyone know] how [far|long a drive] it "
    "is from {city} to {city2}, and whether there is {a:building} on the way?",
    "[If|When] {a:animal} and {a:animal2} [fight|meet|share a cage], which one [usually wins|runs away first|gets "
    "hurt]?",
    "Which [famous|little known|French|American] {job}, born in {city} in the {century} century, is [best "
    "known|remembered] for [work|books|ideas] on {topic}?",
    "What is the name of the [river|mountain|lake|city] that [lies|is found] on the border between {country} and "
    "{country2}?",
    "What [steps|tools|papers] do I need [to sell|to repair|to import] {a:thing} in {country}, and how [long|much "
    "money] does it take?",
    "According to [the Bible|legend|the newspapers|historians], who [killed|saved|betrayed|followed] the {job} of "
    "{city}?",
    "What was the name of the [ship|dog|horse|company] that {person} [owned|lost|sold] [before|during|after] "
    "{the_war}?",
    "My {pet} [has eaten|will not eat|is afraid of] {a:fruit}; [what should I do|is that normal|should I worry]?",
    "In {year} {a:job} from {city} became famous for {a:machine}; what was [his|her] name?",
    "This {animal_class} lives in {country} and eats {s:fruit}; what is it called?",
)
QUESTIONS = (*PERSONS, *PLACES, *DATES, *NUMBERS, *THINGS, *MANNERS, *YES_NO)

OWN_WORDS: Words = {
    "job": listed(
        """doctor, nurse, teacher, painter, sculptor, singer, composer, dancer, actor, director, writer, poet,
        journalist, lawyer, judge, general, soldier, sailor, pilot, astronaut, engineer, architect, carpenter,
        baker, butcher, cook, farmer, fisherman, miner, banker, merchant, politician, senator, priest,
        philosopher, mathematician, physicist, chemist, biologist, astronomer, explorer, detective, photographer,
        librarian, gardener, tailor, plumber, boxer"""
    ),
    "century": listed("twelfth, fourteenth, fifteenth, sixteenth, seventeenth, eighteenth, nineteenth"),
    "year": [str(year) for year in range(1750, 2021)],
    "topic": listed(
        """love, war, money, childhood, death, religion, science, nature, music, politics, education, slavery,
        marriage, travel, freedom, justice, art, farming, hunger, history, gardening, the sea, the moon, the law,
        old age, dreams"""
    ),
    "vitamin": listed("vitamin A, vitamin B, vitamin C, vitamin D, calcium, protein, fiber"),
    "metal": listed("gold, silver, copper, iron, tin, lead, zinc, steel, bronze, brass, aluminum, platinum"),
    "pet": listed("dog, cat, rabbit, hamster, parrot, goldfish, horse, pony, turtle, canary, goat, snake"),
    "animal_class": listed("mammal, bird, reptile, fish, insect, rodent, predator, bear, cat, whale"),
    "collectable": listed("stamp, coin, watch, clock, doll, shell, butterfly, map, medal, postcard, painting, rug"),
    "element": listed(
        """oxygen, hydrogen, helium, carbon, nitrogen, uranium, radium, mercury, sulfur, calcium, sodium, potassium,
        neon, lithium, silicon, titanium, nickel, cobalt, tungsten, iodine, chlorine, phosphorus, plutonium,
        arsenic, gold"""
    ),
    "thing": listed(
        """bicycle, camera, laptop, printer, washing machine, lawn mower, piano, guitar, tent, sofa, mattress,
        refrigerator, stove, lamp, sewing machine, wristwatch, telephone, television, motorcycle, used car, boat,
        vacuum cleaner, leather jacket, carpet, microwave, router, bookshelf, toaster, telescope, umbrella, winter
        coat, fishing rod"""
    ),
    "machine": listed(
        """steam engine, computer, telephone, telescope, microscope, camera, printing press, airplane, helicopter,
        radio, sewing machine, typewriter, submarine, bicycle, locomotive, refrigerator, elevator, light bulb,
        battery, laser, barometer, compass, pendulum clock, parachute, transistor, vacuum cleaner, zipper,
        windmill, rocket, calculator"""
    ),
    "building": listed(
        """library, museum, post office, train station, cathedral, castle, town hall, theater, hospital, airport,
        hotel, swimming pool, supermarket, pharmacy, opera house, university, stadium, lighthouse, zoo,
        restaurant, bank"""
    ),
    "dish": listed(
        """lasagna, goulash, paella, sushi, risotto, ratatouille, chili, moussaka, onion soup, potato salad, beef
        stew, curry, fried rice, apple pie, cheesecake, roast chicken, clam chowder, meat loaf, guacamole,
        borscht, couscous, ravioli"""
    ),
    "unit": listed("inch, foot, yard, mile, meter, kilometer, centimeter, millimeter, fathom, furlong, nautical mile"),
    "emotion": listed(
        "joy, anger, fear, envy, shame, pride, guilt, grief, love, hope, boredom, jealousy, gratitude, homesickness"
    ),
    "ball": listed(
        """racket, bat, puck, shuttlecock, small white ball, oval ball, stick and a ball, net, board and dice"""
    ),
    "sport": listed(
        """soccer, tennis, baseball, basketball, golf, cricket, rugby, hockey, volleyball, badminton, polo, water
        polo, handball, lacrosse, squash, table tennis"""
    ),
    "food": listed("egg, potato, lobster, carrot, beet, turnip, ear of corn, leek, chicken breast, pudding"),
    "plant": listed(
        """tulip, rose, tomato, potato, carrot, sunflower, apple tree, pumpkin, lily, cucumber, onion, daffodil"""
    ),
}  # fmt: skip

OWN_ANIMALS = listed(
    """kangaroo, koala, platypus, polar bear, panda, gorilla, chimpanzee, giraffe, zebra, hippopotamus, hyena,
    cheetah, leopard, otter, badger, beaver, hedgehog, porcupine, bat, mole, dolphin, blue whale, walrus,
    penguin, ostrich, owl, flamingo, pelican, toucan, peacock, vulture, stork, crocodile, chameleon, tortoise,
    cobra, python, shark, octopus"""
)


def question_words(lexicon: Lexicon) -> Words:
    """Our word lists, with WordNet's people, places, wars, animals, plants, instruments, diseases and other terms."""
    countries = lexicon.names("european country", "asian country", "african country", "south american country")
    wars = [name for name in lexicon.names("war") if name.endswith("War")]
    return {
        **OWN_WORDS,
        "person": lexicon.names(
            "writer",
            "composer",
            "painter",
            "scientist",
            "inventor",
            "explorer",
            "actor",
            "singer",
            "statesman",
            n_words=2,
        ),
        "city": lexicon.names("national capital", "city"),
        "country": sorted(set(countries) - {"Albion", "Helvetia", "Holy See", "Logrono"}),
        "river": lexicon.names("river"),
        "lake": [name for name in lexicon.names("lake") if name.startswith("Lake")],
        "mountain": lexicon.names("mountain peak"),
        "battle": [f"Battle of {name}" for name in lexicon.names("battle") if " " not in name],
        "the_war": [f"the {name}" for name in wars],
        "acronym": lexicon.acronyms(),
        "animal": sorted({*OWN_ANIMALS, *lexicon.kinds("mammal", "bird", "reptile", least=1)} - {"beef", "modern man"}),
        "insect": lexicon.kinds("insect", least=1),
        "instrument": lexicon.kinds("musical instrument", least=1),
        "tool": lexicon.kinds("tool", least=1),
        "garment": lexicon.kinds("garment", least=1),
        "disease": sorted(set(lexicon.kinds("disease", least=1)) - {"cold"}),
        "currency": lexicon.kinds("monetary unit", least=1),
        "fruit": lexicon.kinds("edible fruit"),
        "drink": lexicon.kinds("beverage", least=1),
        "tree": lexicon.kinds("tree", least=1),
        "term": lexicon.kinds("artifact", "process", "phenomenon", "natural object", "shape", least=1),
    }
