"""Captions of scenes, in groups that differ in a negation, the voice, the word order, a number or a color."""

from __future__ import annotations

from texts.generated import Words, listed
from texts.lexicon import Lexicon

__all__ = ["CAPTIONS", "caption_words"]

DEEDS = (
    "{A:person} is {doing:deed.0} {a:deed.1}. / There is no {person} {doing:deed.0} {a:deed.1}.",
    "{A:person} is {doing:deed.0} {a:deed.1}. / {A:deed.1} is being {done:deed.0} by {a:person}.",
    "The {person} is not {doing:deed.0} the {deed.1}. / The {deed.1} is not being {done:deed.0} by the {person}.",
    "The {person} {does:deed.0} the {deed.1}. / The {deed.1} {was} {done:deed.0} by the {person}.",
    "{A:look} {person} {did:deed.0} {a:deed.1} {place}. / Nobody {did:deed.0} {a:deed.1} {place}.",
    "Nobody is {doing:deed.0} {a:deed.1}. / Somebody is {doing:deed.0} {a:deed.1}.",
    "{C:n} {s:person} are {doing:deed.0} {a:color} {deed.1}. / {A:person} is {doing:deed.0} {n} {color} {s:deed.1}.",
    "{A:person} in {a:color} {garment} is {doing:deed.0} {a:deed.1}.",
    "{A:person} wearing {a:garment} is {doing:deed.0} {a:color} {deed.1} {place}.",
    "{A:person} and {a:person2} are {doing:deed.0} {a:deed.1}. / {A:person2} and {a:person} are {doing:deed.0} "
    "{a:deed.1}.",
    "{A:person} is watching {a:person2} who is {doing:deed.0} {a:deed.1}. / {A:person2} is {doing:deed.0} "
    "{a:deed.1} and is watched by {a:person}.",
    "The {person} who is {doing:deed.0} the {deed.1} is {look}. / The {look} {person} is {doing:deed.0} the {deed.1}.",
    "{A:deed.1} is being {done:deed.0} {place}. / There is no {deed.1} being {done:deed.0} {place}.",
    "{A:person} is {doing:deed.0} {a:deed.1} without {a:garment}.",
    "{A:person} has just {done:deed.0} {a:deed.1}. / {A:person} is about to {deed.0} {a:deed.1}.",
    "{A:person} stopped {doing:deed.0} the {deed.1}. / {A:person} started {doing:deed.0} the {deed.1}.",
    "Only one {person} is {doing:deed.0} {a:deed.1}. / {C:n} {s:person} are {doing:deed.0} {s:deed.1}.",
    "{A:person} is {doing:deed.0} {a:deed.1} next to {a:animal}. / There is no {animal} next to the {person} "
    "with the {deed.1}.",
    "Nobody {place} is {doing:deed.0} {a:deed.1}.",
    "None of the {s:person} is {doing:deed.0} {a:deed.1}. / All of the {s:person} are {doing:deed.0} {a:deed.1}.",
    "{A:person} is {doing:deed.0} {a:size} {deed.1}. / {A:person} is {doing:deed.0} {a:size2} {deed.1}.",
    "{A:color} {deed.1} is being {done:deed.0} by {a:person} in {a:garment}.",
    "{A:person} can be seen {doing:deed.0} {a:deed.1} {place}.",
    "Instead of {doing:deed.0} {a:deed.1}, the {person} is {doing:act}.",
)
ACTS = (
    "{A:person} is {doing:act} {place}. / {A:person} is not {doing:act} {place}.",
    "There is no {person} {doing:act} {place}. / There is {a:person} {doing:act} {place}.",
    "Nobody is {doing:act} {place}. / {C:n} {s:person} are {doing:act} {place}.",
    "{C:n} {s:person} are {doing:act}. / {C:n2} {s:person} are {doing:act}.",
    "{A:look} {person} is {doing:act}. / {A:look2} {person} is {doing:act}.",
    "{A:person} is {doing:act} while {a:person2} is {doing:act2}. / {A:person2} is {doing:act2} while {a:person} "
    "is {doing:act}.",
    "{A:person} is {doing:act} and {a:person2} is {doing:act2}. / {A:person} is {doing:act2} and {a:person2} is "
    "{doing:act}.",
    "{A:person} in {a:color} {garment} is {doing:act} {place}.",
    "A group of {s:person} is {doing:act} {place}. / {A:person} is {doing:act} {place}, alone.",
    "The {s:person} are {doing:act} in front of {a:building}. / {C:n} {s:person} are behind {a:building}, {doing:act}.",
    "The {person} did not {act} {place}. / The {person} {did:act} {place}.",
    "{S:person} are {doing:act} {place}. / No {s:person} are {doing:act} {place}.",
    "Few {s:person} are {doing:act}. / Many {s:person} are {doing:act}.",
    "Neither the {person} nor the {person2} is {doing:act}. / Both the {person} and the {person2} are {doing:act}.",
    "{A:person} is {doing:act}, surrounded by {s:person2}.",
    "Several {s:person} with {s:garment} are {doing:act} near {a:building}.",
    "{C:place}, {a:person} is {doing:act}. / {A:person} is {doing:act} {place}.",
)
ANIMALS = (
    "{A:fur} {animal} is {doing:move} {place}. / There is no {animal} {doing:move} {place}.",
    "{A:animal} is chasing {a:animal2}. / {A:animal} is being chased by {a:animal2}.",
    "{A:animal} is being chased by {a:animal2}. / {A:animal2} is chasing {a:animal}.",
    "{C:n} {s:animal} are {doing:move} {place}. / {C:n2} {s:animal} are {doing:move} {place}.",
    "The {build} {animal} is {doing:move} beside the {build2} {animal2}. / The {build2} {animal} is {doing:move} "
    "beside the {build} {animal2}.",
    "{A:person} is petting {a:animal}. / {A:animal} is being petted by {a:person}.",
    "{A:animal} is following {a:person} {place}. / {A:person} is following {a:animal} {place}.",
    "{A:animal} without a collar is {doing:move} {place}.",
    "The {animal} is not {doing:move}. / The {animal} is {doing:move} [quickly|slowly|happily|alone].",
    "{A:person} is feeding {n} {s:animal}. / Nobody is feeding the {s:animal}.",
    "{A:fur} {animal} and {a:fur2} {animal} are {doing:move} {place}.",
    "{A:animal} is carrying {a:toy} in its mouth. / {A:animal} has nothing in its mouth.",
    "{A:animal} is looking at {a:animal2} through a fence.",
)
THINGS = (
    "{A:color} {vehicle} is parked in front of {a:building}. / There is no {vehicle} in front of the {building}.",
    "{A:color} {vehicle} is driving past {a:building}. / {A:vehicle} is parked near {a:color} {building}.",
    "{C:n} {s:vehicle} are standing {place}. / {C:n2} {s:vehicle} are standing {place}.",
    "{A:object} is on the {furniture}. / There is nothing on the {furniture}.",
    "{A:color} {object} lies next to {a:color2} {object2}. / {A:color2} {object} lies next to {a:color} {object2}.",
    "The {object} is under the {furniture}. / The {object} is on top of the {furniture}.",
    "There are no {s:person} {place}. / There are {n} {s:person} {place}.",
    "The {building} is empty. / The {building} is full of {s:person}.",
    "{A:person} is holding {a:object} and {a:object2}. / {A:person} is holding {a:object} but no {object2}.",
    "{A:person} is giving {a:object} to {a:person2}. / {A:person2} is giving {a:object} to {a:person}.",
    "{A:object} is given to {a:person} by {a:person2}. / {A:person2} gives {a:person} {a:object}.",
)
CAPTIONS = (*DEEDS, *ACTS, *ANIMALS, *THINGS)

DEED_OBJECTS = {
    "play": "{instrument}",
    "tune": "{instrument}",
    "repair": "{vehicle}",
    "wash": "{vehicle}",
    "push": "{vehicle}",
    "paint": "fence, wall, door, portrait, boat, picture",
    "carry": "{object}",
    "hold": "{object}",
    "drop": "{object}",
    "throw": "ball, frisbee, stone, stick, snowball, javelin, baseball",
    "catch": "ball, frisbee, fish, baseball, football",
    "kick": "ball, football, soccer ball, can",
    "hit": "ball, drum, nail, tennis ball, baseball, golf ball",
    "ride": "bicycle, horse, motorcycle, skateboard, camel, scooter, pony, wave",
    "eat": "sandwich, banana, apple, hamburger, slice of pizza, cookie, carrot, ice cream cone",
    "slice": "onion, tomato, potato, carrot, cucumber, mushroom, lemon, loaf of bread",
    "peel": "potato, banana, orange, apple, carrot, shrimp",
    "cook": "meal, steak, fish, soup, chicken, omelet",
    "fry": "egg, fish, steak, onion, potato",
    "drink": "glass of water, cup of coffee, bottle of beer, milkshake, cup of tea",
    "read": "book, newspaper, letter, map, magazine, story, sign",
    "write": "letter, note, song, postcard, poem",
    "draw": "picture, circle, horse, line, map",
    "cut": "rope, cake, piece of paper, tree, sheet of metal, hedge",
    "open": "door, box, window, bottle, umbrella, can, present",
    "close": "door, window, box, book, gate",
    "climb": "tree, ladder, rock, mountain, wall, rope, fence",
    "build": "wall, sandcastle, snowman, table, boat, house",
    "feed": "{animal}",
    "clean": "window, plate, floor, shirt, pair of shoes",
    "sweep": "floor, street, porch, sidewalk",
    "pull": "cart, sled, rope, wagon, suitcase",
    "sell": "painting, watermelon, basket, rug, newspaper, balloon",
    "wear": "{garment}, mask, pair of sunglasses, backpack",
    "fix": "roof, bicycle, clock, fence, computer, chair",
    "drive": "car, truck, tractor, bus, taxi, boat",
    "fly": "kite, model airplane, drone",
    "lift": "child, barbell, stone, box, suitcase",
    "hug": "child, tree, friend, pillow, dog",
    "photograph": "bird, wedding, statue, bridge, horse, sunset",
    "sew": "dress, button, curtain, quilt",
    "cross": "street, river, bridge, field",
}
OWN_WORDS: Words = {
    "deed": [(verb, thing) for verb, things in DEED_OBJECTS.items() for thing in listed(things)],
    "act": listed(
        """run, dance, sing, swim, sleep, jump, laugh, walk, sit on a bench, stand in line, wait for a bus, ski,
        surf, talk on the phone, lie on the grass, play soccer, play cards, ride horses, smoke, cry, pray, skate,
        march, fight, paint, take pictures, look at a map, climb stairs, jog, eat lunch, clap, wave, cook, kneel,
        box, play chess, dive, camp"""
    ),
    "move": listed("run, sleep, jump, swim, eat, play, walk, lie, sit, stand, drink, roll around, rest"),
    "person": listed(
        """man, woman, boy, girl, child, cook, soldier, player, worker, dancer, musician, old man, young woman,
        little girl, cyclist, policeman, farmer, baby, teenager, lady, student, singer, runner, fisherman, nurse,
        mechanic, clown"""
    ),
    "animal": listed(
        """dog, cat, horse, cow, sheep, monkey, elephant, lion, rabbit, bird, puppy, kitten, goat, bear, duck,
        squirrel, panda, pig"""
    ),
    "instrument": listed(
        """guitar, violin, piano, flute, drum, trumpet, accordion, harp, cello, banjo, saxophone, harmonica"""
    ),
    "vehicle": listed("car, truck, bus, motorcycle, bicycle, van, tractor, taxi, boat, ambulance, police car, jeep"),
    "object": listed(
        """bag, umbrella, box, basket, camera, bucket, flag, book, bottle, suitcase, lamp, hat, ball, guitar, knife,
        cup, phone, towel, candle, map, balloon, newspaper, plate, pillow, bouquet of flowers, broom, key, rope"""
    ),
    "toy": listed("ball, stick, bone, frisbee, shoe, newspaper, toy, fish, tennis ball"),
    "garment": listed(
        """hat, coat, dress, shirt, jacket, helmet, scarf, sweater, uniform, T-shirt, apron, suit, cap, vest"""
    ),
    "color": listed("red, blue, green, yellow, black, white, brown, gray, orange, purple, pink"),
    "fur": listed("black, white, brown, gray, spotted, wet, black and white"),
    "build": listed("big, small, tiny, huge, young, old, thin, fat"),
    "size": listed("big, small, tiny, huge, old, new, broken, heavy"),
    "look": listed("tall, young, old, happy, tired, bald, bearded, blond, smiling, angry, wet, thin, barefoot"),
    "furniture": listed("table, bed, chair, desk, bench, shelf, couch, counter, stool"),
    "building": listed("house, church, store, barn, school, tall building, fountain, garage, hotel, gas station, tent"),
    "was": ["was", "is"],
    "n": listed("two, three, four, five, six, several"),
    "place": listed(
        """in the park, on the street, at the beach, in the snow, in a kitchen, on a stage, near a river, in a field,
        by the road, in the rain, in a crowded room, on a roof, under a tree, in the woods, in a garden, at a
        market, on a hill"""
    ),
}  # fmt: skip


def caption_words(lexicon: Lexicon) -> Words:
    """Our word lists, with WordNet's common dogs, cats and birds."""
    return {
        **OWN_WORDS,
        "animal": sorted({*OWN_WORDS["animal"], *lexicon.kinds("dog", "cat", "bird", least=2)}),
    }
